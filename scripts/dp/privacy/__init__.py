"""What is proven, and what attacks need: profiles, composition, sensitivities, worst pairs."""

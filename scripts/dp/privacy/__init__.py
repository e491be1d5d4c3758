"""What is proven, and what attacks find: profiles, composition, sensitivities, worst pairs."""

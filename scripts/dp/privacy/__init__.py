"""What is proven, and what attacks need: profiles, composition, sensitivities, worst pairs."""

__all__ = ["composition", "pairs", "profiles"]

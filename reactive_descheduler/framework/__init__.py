"""The interfaces of strategies, filters and gates, and what assembles them into profiles."""

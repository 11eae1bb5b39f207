"""What the native API takes and gives, as pydantic models, and how records become them. No queries and no routes."""

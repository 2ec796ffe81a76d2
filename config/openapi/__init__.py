"""What the OpenAPI document says beyond what the views and serializers say themselves."""

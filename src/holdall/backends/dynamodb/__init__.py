"""DynamoDB over its own protocol."""

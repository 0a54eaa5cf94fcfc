"""What DynamoDB and S3 have in common: signatures, credentials, endpoints, HTTP."""

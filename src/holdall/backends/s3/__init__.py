"""Objects in a bucket of S3, or of any server that speaks its protocol."""

from holdall.backends.s3.service import S3Service

__all__ = ["S3Service"]

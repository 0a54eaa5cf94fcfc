"""Codecs: from values of a field's type to stored attributes, and back."""

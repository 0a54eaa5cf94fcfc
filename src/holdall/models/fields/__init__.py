"""Fields as callers use them: values, options, conditions and updates."""

"""The channel that followers of exports are woken by."""

CHANGED = "export_changed"  # a step was written, or a state changed: who follows reads at once

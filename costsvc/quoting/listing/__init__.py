"""What the catalog holds on a day, as plain rows: one file per resource."""

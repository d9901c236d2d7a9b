"""A model's `config.json` to the entry that a catalog file of it would hold, with what each part was read from."""

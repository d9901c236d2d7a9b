"""Other predictors, side by side on the same measured points, each in an environment of its own."""

"""The settings of a training: schema, files, schedules."""

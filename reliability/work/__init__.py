"""A job's life: lease, attempt, retry, dead letter. Only this package moves a job."""

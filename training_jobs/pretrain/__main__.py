"""``python -m training_jobs.pretrain``: see `training_jobs.pretrain.loop`."""

from training_jobs.pretrain.loop import main

__all__ = ["main"]

if __name__ == "__main__":
    main()

"""Promotion of model versions: evaluation, decision, record, and move of the alias."""


class NotMoved(RuntimeError):
    """Error raised if a promotion is recorded, but the alias could not be moved.

    ``run_id``: id of the promotion run.
    """

    def __init__(self, message: str, run_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id

"""The program: `python -m digits.train` trains with Keras `fit`, resumes where it was stopped, and exports.

Exit codes: 0 trained, 1 training cannot go on, 2 wrong settings, 143 stopped by SIGTERM (the epoch is saved).
"""

from __future__ import annotations

import os
import sys

from digits.hyperparameters import SettingsError
from digits.settings import read_settings


def main() -> int:
    try:
        settings = read_settings(os.environ)
    except SettingsError as error:
        print(f"digits.train: {error}", file=sys.stderr)
        return 2
    print(f"loading TensorFlow; {settings.hyperparameters}", flush=True)
    # TensorFlow takes seconds to import, so wrong settings are refused and a sign of life is given before.
    from digits.fit import TrainingError, train

    try:
        return train(settings)
    except TrainingError as error:
        print(f"digits.train: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

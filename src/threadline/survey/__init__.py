"""Everything in all homes at once: `overview` for a first look, `examine_all` for the doctor's."""

from threadline.survey.doctor import DriftItem, Examination, ProblemCount, examine, examine_all, problems_of
from threadline.survey.overview import Overview, overview

__all__ = ["DriftItem", "Examination", "Overview", "ProblemCount", "examine", "examine_all", "overview", "problems_of"]

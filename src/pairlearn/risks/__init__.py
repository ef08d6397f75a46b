"""Risk estimators: the risk of a classifier, estimated from judged pairs."""

from pairlearn.risks.affine import AffineRisk as AffineRisk
from pairlearn.risks.affine import ConfDiff as ConfDiff
from pairlearn.risks.affine import Convex as Convex
from pairlearn.risks.affine import NonNegative as NonNegative
from pairlearn.risks.affine import Sconf as Sconf
from pairlearn.risks.affine import SconfConfDiff as SconfConfDiff
from pairlearn.risks.affine import affine_table as affine_table
from pairlearn.risks.base import BASIS as BASIS
from pairlearn.risks.base import CORRECTIONS as CORRECTIONS
from pairlearn.risks.base import TERMS as TERMS
from pairlearn.risks.base import Risk as Risk
from pairlearn.risks.base import contract as contract
from pairlearn.risks.base import correct as correct
from pairlearn.risks.base import correction_slope as correction_slope
from pairlearn.risks.base import make_table as make_table
from pairlearn.risks.base import pair_moments as pair_moments
from pairlearn.risks.catalogue import RISKS as RISKS
from pairlearn.risks.catalogue import make_risk as make_risk
from pairlearn.risks.catalogue import register_risk as register_risk
from pairlearn.risks.checks import check_risk as check_risk
from pairlearn.risks.likelihood import PairLikelihood as PairLikelihood
from pairlearn.risks.siblings import SIBLINGS as SIBLINGS
from pairlearn.risks.siblings import Pconf as Pconf
from pairlearn.risks.siblings import SharesRisk as SharesRisk
from pairlearn.risks.supervised import Mixed as Mixed
from pairlearn.risks.supervised import Supervised as Supervised

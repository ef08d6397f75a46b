"""The pages of the annotation studio, served over HTTP. Needs the extra ``annotate``."""

from pairlearn_studio.server.app import make_app, serve

__all__ = ["make_app", "serve"]

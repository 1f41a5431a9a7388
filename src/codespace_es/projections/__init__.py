"""Views for readers, each a pure fold over recorded events. They can be deleted and rebuilt."""

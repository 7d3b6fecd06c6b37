//! skills-ref 0.1.1, verdict for verdict.

//! The data that selection needs before it sees a catalog: word vectors and background frequencies.

use std::sync::Arc;

use crate::background::Background;
use crate::vectors::Vectors;

/// Word vectors and background frequencies. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Model {
    vectors: Shared<Vectors>,
    background: Shared<Background>,
}

#[derive(Debug)]
enum Shared<T: 'static> {
    Embedded(&'static T),
    Loaded(Arc<T>),
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        match self {
            Shared::Embedded(value) => Shared::Embedded(value),
            Shared::Loaded(value) => Shared::Loaded(Arc::clone(value)),
        }
    }
}

impl<T> std::ops::Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Shared::Embedded(value) => value,
            Shared::Loaded(value) => value,
        }
    }
}

impl Default for Model {
    fn default() -> Self {
        Model::embedded()
    }
}

impl Model {
    /// Returns the model embedded in the program.
    pub fn embedded() -> Self {
        Model {
            vectors: Shared::Embedded(Vectors::embedded()),
            background: Shared::Embedded(Background::embedded()),
        }
    }

    /// Replaces the vectors.
    pub fn with_vectors(self, vectors: Vectors) -> Self {
        Model { vectors: Shared::Loaded(Arc::new(vectors)), ..self }
    }

    pub fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    pub fn background(&self) -> &Background {
        &self.background
    }
}

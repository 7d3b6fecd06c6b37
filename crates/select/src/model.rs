//! The data that selection needs before it sees a catalog: word vectors and background frequencies.

use std::sync::Arc;

use crate::background::BackgroundFrequencies;
use crate::vectors::WordVectors;

/// Word vectors and background frequencies. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct SelectionModel {
    vectors: EmbeddedOrLoaded<WordVectors>,
    background: EmbeddedOrLoaded<BackgroundFrequencies>,
}

#[derive(Debug)]
enum EmbeddedOrLoaded<T: 'static> {
    Embedded(&'static T),
    Loaded(Arc<T>),
}

impl<T> Clone for EmbeddedOrLoaded<T> {
    fn clone(&self) -> Self {
        match self {
            EmbeddedOrLoaded::Embedded(value) => EmbeddedOrLoaded::Embedded(value),
            EmbeddedOrLoaded::Loaded(value) => EmbeddedOrLoaded::Loaded(Arc::clone(value)),
        }
    }
}

impl<T> std::ops::Deref for EmbeddedOrLoaded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            EmbeddedOrLoaded::Embedded(value) => value,
            EmbeddedOrLoaded::Loaded(value) => value,
        }
    }
}

impl Default for SelectionModel {
    fn default() -> Self {
        SelectionModel::embedded()
    }
}

impl SelectionModel {
    /// Returns the model embedded in the program.
    pub fn embedded() -> Self {
        SelectionModel {
            vectors: EmbeddedOrLoaded::Embedded(WordVectors::embedded()),
            background: EmbeddedOrLoaded::Embedded(BackgroundFrequencies::embedded()),
        }
    }

    /// Replaces the vectors.
    pub fn with_vectors(self, vectors: WordVectors) -> Self {
        SelectionModel { vectors: EmbeddedOrLoaded::Loaded(Arc::new(vectors)), ..self }
    }

    pub fn vectors(&self) -> &WordVectors {
        &self.vectors
    }

    pub fn background(&self) -> &BackgroundFrequencies {
        &self.background
    }
}

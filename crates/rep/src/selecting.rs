//! Making a catalog ready for selection, with what was kept from last time.

use camino::Utf8Path;
use rayon::prelude::*;
use repertoire_select::vectors::Vectors;
use repertoire_select::{Document, Model, Selector, Settings};
use repertoire_skill::catalog::Catalog;
use repertoire_text::fs;

use crate::cli::Ctx;
use crate::failure::Failure;

const VECTORS_BYTES_MAX: u64 = 512 * 1024 * 1024;

impl Ctx<'_> {
    /// A selector over a catalog.
    pub(crate) fn selector(
        &self,
        catalog: &Catalog,
        settings: Settings,
    ) -> Result<Selector, Failure> {
        let model = self.model()?;
        // Digests are independent of each other, and all of them are needed.
        catalog.entries().par_iter().for_each(|entry| {
            entry.skill.digest();
        });
        let documents = Document::all(catalog);
        Ok(Selector::new(&documents, model, settings, None))
    }

    /// The vectors and frequencies to select with.
    pub(crate) fn model(&self) -> Result<Model, Failure> {
        match self.config.vectors_dir() {
            None => Ok(Model::embedded()),
            Some(dir) => Ok(Model::embedded().with_vectors(read_vectors(&dir)?)),
        }
    }
}

fn read_vectors(dir: &Utf8Path) -> Result<Vectors, Failure> {
    let read = |name: &str| {
        fs::read_bytes_beneath(dir, name.into(), VECTORS_BYTES_MAX).map_err(|error| {
            Failure::cannot_run(format!("the word vectors cannot be read: {dir}/{name}: {error}"))
                .hint("`selection.vectors` in the configuration names this folder.")
        })
    };
    let vocabulary = String::from_utf8(read("vocab.txt")?)
        .map_err(|_| Failure::cannot_run(format!("{dir}/vocab.txt is not UTF-8")))?;
    Vectors::from_parts(&vocabulary, &read("static.scale.f32")?, &read("static.i8")?).map_err(
        |error| Failure::cannot_run(format!("the word vectors in {dir} do not fit: {error}")),
    )
}

//! Prepares a catalog for selection, with a cached index.

use std::sync::Arc;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use repertoire_agent::system::MakeSelector;
use repertoire_select::vectors::Vectors;
use repertoire_select::{Document, Index, Model, Selector, Settings};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::skill::Digest;
use repertoire_text::fs;

use crate::cli::Ctx;
use crate::failure::Failure;

const VECTORS_BYTES_MAX: u64 = 512 * 1024 * 1024;
const INDEX_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Maximum number of cached indexes, one per project.
const INDEXES_MAX: usize = 32;

impl Ctx<'_> {
    /// Returns a selector for a catalog. Like the catalog, it is leaked on purpose.
    pub(crate) fn selector(
        &self,
        catalog: &Catalog,
        settings: Settings,
    ) -> Result<&'static Selector, Failure> {
        let selector = Cache::of(self).selector(catalog, self.model()?, settings);
        Ok(Box::leak(Box::new(selector)))
    }

    /// Returns a factory with which an agent's system makes the same selector on demand.
    pub(crate) fn make_selector(&self) -> Result<MakeSelector, Failure> {
        let (cache, model) = (Cache::of(self), self.model()?);
        Ok(Arc::new(move |catalog, settings| cache.selector(catalog, model.clone(), settings)))
    }

    /// Returns the vectors and word frequencies for the selection.
    pub(crate) fn model(&self) -> Result<Model, Failure> {
        match self.config.vectors_dir() {
            None => Ok(Model::embedded()),
            Some(dir) => Ok(Model::embedded().with_vectors(read_vectors(&dir)?)),
        }
    }
}

/// The cached index of a project. It only saves time: on any error, the index is rebuilt.
struct Cache {
    dir: Utf8PathBuf,
    name: String,
}

impl Cache {
    fn of(ctx: &Ctx<'_>) -> Self {
        let place = format!("{}\0{}", ctx.config.places().project(), ctx.config.profile().as_str());
        let digest = Digest::of(place.as_bytes()).to_string();
        let short = digest.trim_start_matches("sha256:").get(..16).unwrap_or_default();
        Cache { dir: ctx.env.cache_dir().join("index"), name: format!("{short}.index") }
    }

    fn selector(&self, catalog: &Catalog, model: Model, settings: Settings) -> Selector {
        // Compute the digests in parallel; all of them are needed below.
        catalog.entries().par_iter().for_each(|entry| {
            entry.skill.digest();
        });
        let documents = Document::all(catalog);
        let before = self.read();
        let is_current = before
            .as_ref()
            .is_some_and(|index| index.is_made_with(model.vectors()) && index.is_of(&documents));
        let selector = Selector::new(&documents, model, settings, before);
        if !is_current {
            self.write(selector.index());
        }
        selector
    }

    fn read(&self) -> Option<Index> {
        let bytes = fs::read_bytes_beneath(&self.dir, self.name.as_str().into(), INDEX_BYTES_MAX);
        Index::read(bytes.ok()?).ok()
    }

    fn write(&self, index: &Index) {
        if fs::write_atomic(&self.dir.join(&self.name), &index.write()).is_ok() {
            self.forget_the_oldest();
        }
    }

    fn forget_the_oldest(&self) {
        let Ok(entries) = fs::entries(&self.dir) else { return };
        let names = entries.filter_map(|entry| entry.ok()?.name.into_string().ok());
        let mut kept: Vec<(SystemTime, Utf8PathBuf)> = names
            .filter(|name| name.ends_with(".index"))
            .filter_map(|name| {
                let path = self.dir.join(name);
                Some((path.metadata().ok()?.modified().ok()?, path))
            })
            .collect();
        kept.sort_unstable_by(|a, b| b.cmp(a));
        for (_, path) in kept.iter().skip(INDEXES_MAX) {
            // Another process may have removed it already.
            let _ = std::fs::remove_file(path);
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

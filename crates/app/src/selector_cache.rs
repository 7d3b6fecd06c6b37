//! Prepares a catalog for selection, with a cached index.

use std::sync::Arc;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;
use repertoire_agent::system::SelectorFactory;
use repertoire_select::vectors::WordVectors;
use repertoire_select::{
    SelectionModel, SelectionSettings, SkillDocument, SkillIndex, SkillSelector,
};
use repertoire_skill::catalog::Catalog;
use repertoire_skill::skill::ContentDigest;
use repertoire_text::fs;

use crate::context::AppContext;
use crate::error::AppError;

const VECTORS_BYTES_MAX: u64 = 512 * 1024 * 1024;
const INDEX_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Maximum number of cached indexes, one per project.
const INDEXES_MAX: usize = 32;

impl AppContext<'_> {
    /// Returns a selector for a catalog. Like the catalog, it is leaked on purpose.
    pub fn build_selector(
        &self,
        catalog: &Catalog,
        settings: SelectionSettings,
    ) -> Result<&'static SkillSelector, AppError> {
        let selector = SelectorIndexCache::for_project(self).build_selector(
            catalog,
            self.selection_model()?,
            settings,
        );
        Ok(Box::leak(Box::new(selector)))
    }

    /// Returns a factory with which an agent's system makes the same selector on demand.
    pub fn make_selector(&self) -> Result<SelectorFactory, AppError> {
        let (cache, model) = (SelectorIndexCache::for_project(self), self.selection_model()?);
        Ok(Arc::new(move |catalog, settings| {
            cache.build_selector(catalog, model.clone(), settings)
        }))
    }

    /// Returns the vectors and word frequencies for the selection.
    pub fn selection_model(&self) -> Result<SelectionModel, AppError> {
        match &self.config.values().selection_vectors {
            None => Ok(SelectionModel::embedded()),
            Some(dir) => Ok(SelectionModel::embedded().with_vectors(read_vectors(dir)?)),
        }
    }
}

/// The cached index of a project. It only saves time: on any error, the index is rebuilt.
struct SelectorIndexCache {
    dir: Utf8PathBuf,
    name: String,
}

impl SelectorIndexCache {
    fn for_project(ctx: &AppContext<'_>) -> Self {
        let place = format!(
            "{}\0{}",
            ctx.config.places().project_dir(),
            ctx.config.values().profile.as_str()
        );
        let digest = ContentDigest::hash_bytes(place.as_bytes()).to_string();
        let short = digest.trim_start_matches("sha256:").get(..16).unwrap_or_default();
        SelectorIndexCache {
            dir: ctx.env.cache_dir().join("index"),
            name: format!("{short}.index"),
        }
    }

    fn build_selector(
        &self,
        catalog: &Catalog,
        model: SelectionModel,
        settings: SelectionSettings,
    ) -> SkillSelector {
        // Compute the digests in parallel; all of them are needed below.
        catalog.entries().par_iter().for_each(|entry| {
            entry.skill.digest();
        });
        let documents = SkillDocument::from_catalog(catalog);
        let before = self.read_index();
        let is_current = before.as_ref().is_some_and(|index| {
            index.is_made_with(model.vectors()) && index.holds_exactly(&documents)
        });
        let selector = SkillSelector::new(&documents, model, settings, before);
        if !is_current {
            self.write_index(selector.index());
        }
        selector
    }

    fn read_index(&self) -> Option<SkillIndex> {
        let bytes = fs::read_bytes_beneath(&self.dir, self.name.as_str().into(), INDEX_BYTES_MAX);
        SkillIndex::read(bytes.ok()?).ok()
    }

    fn write_index(&self, index: &SkillIndex) {
        if fs::write_atomic(&self.dir.join(&self.name), &index.write()).is_ok() {
            self.remove_oldest();
        }
    }

    fn remove_oldest(&self) {
        let Ok(entries) = fs::list_entries(&self.dir) else { return };
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

fn read_vectors(dir: &Utf8Path) -> Result<WordVectors, AppError> {
    let read = |name: &str| {
        fs::read_bytes_beneath(dir, name.into(), VECTORS_BYTES_MAX).map_err(|error| {
            AppError::cannot_run(format!("the word vectors cannot be read: {dir}/{name}: {error}"))
                .hint("`selection.vectors` in the configuration names this folder.")
        })
    };
    let vocabulary = String::from_utf8(read("vocab.txt")?)
        .map_err(|_| AppError::cannot_run(format!("{dir}/vocab.txt is not UTF-8")))?;
    WordVectors::from_parts(&vocabulary, &read("static.scale.f32")?, &read("static.i8")?).map_err(
        |error| AppError::cannot_run(format!("the word vectors in {dir} do not fit: {error}")),
    )
}

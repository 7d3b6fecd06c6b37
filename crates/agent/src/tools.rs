//! Tools, one a file.
use crate::event::TodoItem;
use crate::tool::Tool;
use std::sync::{Arc, Mutex};
pub mod delegate;
pub mod skill;
pub mod skill_search;
/// x
pub fn builtin() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(skill::Skill::default()),
        Arc::new(skill_search::SkillSearch),
        Arc::new(delegate::Delegate),
    ]
}
/// x
#[derive(Debug, Default)]
pub struct State {
    todos: Mutex<Vec<TodoItem>>,
}
#[allow(missing_docs)]
impl State {
    pub fn todos(&self) -> Vec<TodoItem> {
        self.todos.lock().unwrap().clone()
    }
    pub fn set_todos(&self, items: Vec<TodoItem>) {
        *self.todos.lock().unwrap() = items;
    }
}

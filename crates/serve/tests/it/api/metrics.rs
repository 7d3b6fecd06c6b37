//! Figures for Prometheus.

use crate::serve_state::{Field, Work};

#[tokio::test]
async fn figures_count_runs_requests_skills_and_listeners() {
    let served = Field::with_skills().serve().await;
    let work = Work::begin(served.serve_state.journal().await.unwrap(), "a", "/a").await;
    work.step(1, 250_000).await;
    served.get("/api/v1/skills/invoices").await.ok();
    served.get("/api/v1/skills/nobody").await.refused(404);
    let mut client = served.listen("", None).await;
    assert_eq!(client.next().await.unwrap().event, "hello");
    let figures = served.get("/metrics").await;
    assert_eq!(figures.status, 200, "{}", figures.text);
    assert!(figures.kind.starts_with("application/openmetrics-text"), "{}", figures.kind);
    for line in [
        "rep_runs{status=\"running\"} 1",
        "rep_cost_usd_total 0.25",
        "rep_http_requests_total{method=\"GET\",route=\"/api/v1/skills/{name}\",status=\"404\"} 1",
        "rep_event_listeners 1",
        "rep_skills{state=\"used\"} 2",
        "rep_skill_reloads 0",
    ] {
        assert!(figures.text.lines().any(|found| found == line), "{line}:\n{}", figures.text);
    }
    assert_eq!(figures.text.matches("# EOF").count(), 1);
    assert!(figures.text.ends_with("# EOF\n"));
    drop(client);
    work.step(2, 250_000).await;
    let again = served.get("/metrics").await;
    assert!(again.text.contains("rep_cost_usd_total 0.5\n"), "{}", again.text);
}

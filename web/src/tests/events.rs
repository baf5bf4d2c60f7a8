//! Tests of the event stream of a run.

use super::*;

/// Reads the data of Server-Sent Events.
pub(super) struct Events {
    stream: BodyDataStream,
    text: String,
}

impl Events {
    pub(super) async fn new(site: &Site, run: &str) -> Self {
        let response = site.get(&format!("/runs/{run}/events")).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        Events { stream: response.into_body().into_data_stream(), text: String::new() }
    }

    /// Waits until the stream follows the run. The stream then reports all later events.
    async fn follows(&mut self) {
        let chunk = tokio::time::timeout(LONG, self.stream.next()).await.expect("the stream begins").unwrap();
        self.text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
    }

    /// Returns the next update as `event key`, and the last update as `done` with the first reason
    /// for the exit code. Returns `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                let update = data.map(|data| {
                    let json: serde_json::Value = serde_json::from_str(data).unwrap();
                    let about = json["key"].as_str().or(json["reasons"][0].as_str()).unwrap_or("");
                    format!("{} {about}", json["event"].as_str().unwrap())
                });
                self.text = rest.to_owned();
                match update {
                    Some(update) => return Some(update),
                    // A comment that keeps the connection open.
                    None => continue,
                }
            }
            let chunk = tokio::time::timeout(LONG, self.stream.next()).await.expect("the stream continues")?;
            self.text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
    }

    pub(super) async fn all(mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(update) = self.next().await {
            all.push(update);
        }
        all
    }
}

/// A run with all its events.
pub(super) async fn recorded_run(out: &Path) -> (RunReport, Vec<Event>) {
    let all = Arc::new(Mutex::new(Vec::new()));
    let into = all.clone();
    let report = failing_run_to(out, Arc::new(move |event: &Event| into.lock().unwrap().push(event.clone()))).await;
    (report, std::mem::take(&mut *all.lock().unwrap()))
}

#[tokio::test]
async fn reports_a_live_run_in_order_also_to_late_clients() {
    const DONE: &str = "done the target fails 16 cases";
    let folder = tempfile::tempdir().unwrap();
    let recorded = tempfile::tempdir().unwrap();
    let (report, all) = recorded_run(recorded.path()).await;

    // The same run again, one event at a time.
    let site = site(folder.path()).await;
    let live = site.live.sink();
    let keys: Vec<CaseKey> = report.results.iter().map(|result| result.key.clone()).collect();
    site.store.begin(&report.run, &report.cases, &keys).await.unwrap();
    site.store.set_status(&report.run.id, RunStatus::Running).await.unwrap();
    let page = site.text(&format!("/runs/{}", report.run.id)).await;
    assert!(page.contains(&format!("data-events=\"/runs/{}/events\"", report.run.id)), "{page}");

    let mut early = Events::new(&site, &report.run.id).await;
    early.follows().await;
    let (mut early_updates, mut expected) = (Vec::new(), Vec::new());
    let mut late = None;
    for event in all {
        let update = match &event {
            Event::RunStarted { .. } | Event::TargetDown { .. } => None,
            Event::CaseStarted { key, .. } => Some(format!("started {key}")),
            Event::CaseStep { key, .. } => Some(format!("step {key}")),
            Event::CaseFinished { result } => {
                site.store.finish_case(&report.run.id, result).await.unwrap();
                Some(format!("finished {}", result.key))
            }
            Event::RunFinished { summary } => {
                site.store.finish(&report.run.id, summary).await.unwrap();
                Some(DONE.to_owned())
            }
            Event::TargetWaiting { .. } => Some("waiting ".to_owned()),
        };
        if update.as_deref() == Some(format!("started {}", keys[8]).as_str()) {
            late = Some(Events::new(&site, &report.run.id).await);
        }
        live.event(&event);
        if let Some(update) = update {
            // The stream reads the store either before or after the event. In both situations, it
            // reports each case once. It also reports each step, because a case is finished in the
            // store only after its last step.
            while early_updates.last() != Some(&update) {
                early_updates.push(early.next().await.expect("the stream continues"));
            }
            expected.push(update);
        }
    }
    assert_eq!(early.next().await, None, "the stream ends with the run");
    let finished =
        |all: &[String]| all.iter().filter(|update| update.starts_with("finished")).cloned().collect::<Vec<_>>();
    assert_eq!(early_updates, expected, "each update arrives once, and in order");
    let late_updates = late.unwrap().all().await;
    assert_eq!(finished(&late_updates), finished(&expected), "each finished case arrives once, and in order");
    assert_eq!(late_updates.last().unwrap(), DONE);

    // After the run, a new client gets only the finished cases and the end of the run.
    let mut afterwards = finished(&expected);
    afterwards.push(DONE.to_owned());
    assert_eq!(Events::new(&site, &report.run.id).await.all().await, afterwards);
}

#[tokio::test]
async fn a_run_of_another_process_is_read_from_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = tempfile::tempdir().unwrap();
    let report = failing_run(recorded.path()).await;
    let site = site(folder.path()).await;
    let (id, result) = (&report.run.id, &report.results[0]);
    site.store.begin(&report.run, &report.cases, std::slice::from_ref(&result.key)).await.unwrap();
    site.store.set_status(id, RunStatus::Running).await.unwrap();
    let mut events = Events::new(&site, id).await;
    site.store.finish_case(id, result).await.unwrap();
    assert_eq!(events.next().await, Some(format!("finished {}", result.key)));
    site.store.finish(id, &report.summary).await.unwrap();
    assert_eq!(events.next().await.as_deref(), Some("done the target fails 16 cases"));
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn event_streams_end_when_the_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = tempfile::tempdir().unwrap();
    let report = failing_run(recorded.path()).await;
    let site = site(folder.path()).await;
    site.store.begin(&report.run, &report.cases, &[report.results[0].key.clone()]).await.unwrap();
    let mut events = Events::new(&site, &report.run.id).await;
    site.stop.send_replace(true);
    assert_eq!(events.next().await, None);
}

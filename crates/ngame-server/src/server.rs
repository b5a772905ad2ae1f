//! The whole server: from settings to the end of the last request.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;

use crate::connections::accept;
use crate::log::Log;
use crate::routes::app;
use crate::service::{Service, Which};
use crate::settings::{ServeError, Settings};

/// Threads that read requests and write answers; computing has its own.
const IO_THREADS: usize = 2;

/// How the names of threads begin that may hold a user's text.
const OUR_THREADS: [&str; 3] = ["serves", "answers", "computes"];

/// How often folders are looked at for a new model.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The longest pause between two attempts to load a folder that is not whole.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A server that listens and has not begun to answer.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    service: Arc<Service>,
    control: Control,
}

/// Stops a server or has it load its models anew, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Control {
    stop: Arc<Notify>,
    reload: Arc<Notify>,
}

impl Control {
    /// Ends the server when what it is doing is done.
    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// Loads all models anew.
    pub fn reload(&self) {
        self.reload.notify_one();
    }
}

impl Server {
    /// Opens the models and takes the address.
    pub fn open(settings: Settings, log: Log) -> Result<Self, ServeError> {
        settings.check()?;
        let address = settings.address;
        // The address first: a model may take a while, and the port may be taken.
        let failed = |source| ServeError::Io { action: format!("listen on {address}"), source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let service = Service::open(settings, log)?;
        Ok(Self { listener, address, service, control: Control::default() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What stops it.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Answers until it is told to stop, by [`Control::stop`], Ctrl-C or SIGTERM; then ends what it
    /// has begun.
    pub fn run(self) -> Result<(), ServeError> {
        let failed = |action: &str| {
            let action = action.to_owned();
            move |source| ServeError::Io { action, source }
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(IO_THREADS)
            .max_blocking_threads(4)
            .thread_name("serves")
            .enable_all()
            .build()
            .map_err(failed("start threads"))?;
        let Self { listener, address, service, control } = self;
        keep_panics_quiet(&service.log);
        let served = Arc::clone(&service);
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(failed("listen"))?;
            let signals = Signals::new().map_err(failed("listen for signals"))?;
            let models: Vec<_> = service.models.places().iter().map(|p| p.name.clone()).collect();
            let fields = [("address", address.to_string().into()), ("models", json!(models))];
            service.log.info("listening", &fields);
            let watching =
                tokio::spawn(watch(Arc::clone(&service), control.reload, signals.hangup));
            let stop = async {
                tokio::select! {
                    () = control.stop.notified() => {}
                    () = ended(signals.interrupt, signals.terminate) => {}
                }
                service.log.info("stopping", &[("waiting", service.batcher.waiting().into())]);
            };
            accept(listener, Arc::clone(&service), app(Arc::clone(&service)), stop).await;
            watching.abort();
            Ok::<(), ServeError>(())
        })?;
        served.batcher.finish();
        served.log.info("stopped", &[]);
        Ok(())
    }
}

/// A panic says what it was about, which may be a user's text: of our own threads, the log gets the
/// place only.
fn keep_panics_quiet(log: &Arc<Log>) {
    let log = Arc::clone(log);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let is_ours = |name: &str| OUR_THREADS.iter().any(|ours| name.starts_with(ours));
        if !thread.name().is_some_and(is_ours) {
            return before(panic);
        }
        let place = panic.location().map(|place| format!("{}:{}", place.file(), place.line()));
        log.error("a bug", &[("place", place.into())]);
    }));
}

/// Loads models anew when asked and when a folder has changed. A folder that is not whole is tried
/// again, after longer and longer: it may still be being copied.
async fn watch(service: Arc<Service>, reload: Arc<Notify>, mut hangup: Signal) {
    let mut pause = LOOK_EVERY;
    loop {
        let which = tokio::select! {
            () = reload.notified() => Which::All,
            () = hangup.received() => Which::All,
            () = tokio::time::sleep(pause) => Which::Changed,
        };
        let service = Arc::clone(&service);
        let loading = tokio::task::spawn_blocking(move || {
            if which == Which::Changed && !service.has_changed() {
                return true;
            }
            // One thread of its own: requests go on with all others.
            match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
                Ok(pool) => pool.install(|| service.reload(which)),
                Err(_) => false,
            }
        });
        pause = match loading.await {
            Ok(true) => LOOK_EVERY,
            _ => (pause * 2).min(LONGEST_PAUSE),
        };
    }
}

/// A signal that may come.
#[derive(Debug)]
struct Signal(#[cfg(unix)] tokio::signal::unix::Signal);

impl Signal {
    #[cfg(unix)]
    async fn received(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    #[cfg(not(unix))]
    async fn received(&mut self) {
        std::future::pending::<()>().await;
    }
}

#[derive(Debug)]
struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    #[cfg(unix)]
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            hangup: Signal(signal(SignalKind::hangup())?),
            interrupt: Signal(signal(SignalKind::interrupt())?),
            terminate: Signal(signal(SignalKind::terminate())?),
        })
    }

    #[cfg(not(unix))]
    fn new() -> std::io::Result<Self> {
        Ok(Self { hangup: Signal(), interrupt: Signal(), terminate: Signal() })
    }
}

async fn ended(mut interrupt: Signal, mut terminate: Signal) {
    #[cfg(not(unix))]
    let _ = tokio::signal::ctrl_c().await;
    tokio::select! {
        () = interrupt.received() => {}
        () = terminate.received() => {}
    }
}

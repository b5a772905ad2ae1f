//! Connections: how many, how slow, and how they end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::service::Service;
use crate::timed_stream::TimedStream;

/// How long to wait when the system has no more files for connections.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections until `stop`, then lets those that are being answered end.
pub(crate) async fn accept(
    listener: TcpListener,
    service: Arc<Service>,
    app: Router,
    stop: impl Future<Output = ()>,
) {
    let limits = service.settings.limits;
    let room = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        match (permit, accepted) {
            (Ok(permit), Ok((stream, _))) => serve(stream, permit, &service, &app, &graceful),
            // Too many open files, or a client that was gone at once: others may still come.
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
    service.begin_stopping();
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(limits.shutdown_time) => {
            service.log.warning("connections were cut off: they took too long to end", &[]);
        }
    }
}

fn serve(
    stream: TcpStream,
    permit: OwnedSemaphorePermit,
    service: &Arc<Service>,
    app: &Router,
    graceful: &GracefulShutdown,
) {
    let limits = &service.settings.limits;
    // Answers are small: waiting to send them with others would cost milliseconds.
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(TimedStream::new(stream, limits.write_time));
    // A client that closes its half is taken to be gone, so that what it asked costs nothing more.
    let connection = http1::Builder::new()
        .half_close(false)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(limits.header_bytes)
        .max_headers(limits.headers)
        .serve_connection(stream, TowerToHyperService::new(app.clone()));
    let connection = graceful.watch(connection);
    let measurements = Arc::clone(&service.measurements);
    measurements.connections.fetch_add(1, Ordering::Relaxed);
    tokio::spawn(async move {
        // What goes wrong on a connection is the client's: it broke off, was too slow, or spoke no HTTP.
        let _ = connection.await;
        measurements.connections.fetch_sub(1, Ordering::Relaxed);
        drop(permit);
    });
}

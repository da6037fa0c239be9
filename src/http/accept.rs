//! From a TCP connection to its requests, for all HTTP servers.
//!
//! It is what actix-web's `HttpServer` does, which hands the connection to the HTTP library as it is. Here the library gets a
//! [`Stream`], and a connection counts from its first byte on: none is forgotten at the end. And the library's part is only
//! there while somebody is connected ([`while_needed`]). Decision record 0017.

use std::{
    cell::RefCell,
    fmt,
    future::poll_fn,
    net::SocketAddr,
    rc::{Rc, Weak},
    sync::Arc,
    time::Duration,
};

use actix_http::{HttpService, Protocol, Request};
use actix_service::{
    IntoServiceFactory, ServiceFactory, ServiceFactoryExt as _, apply_fn_factory, fn_service, map_config,
};
use actix_tls::accept::rustls_0_23::Acceptor;
use actix_web::{
    Error,
    body::MessageBody,
    dev::{AppConfig, Response, Service as _},
    rt::net::TcpStream,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::sleep,
};

use super::{
    connections::Connections,
    stream::{HEAD_TIME, Stream},
};

/// Spec 70 §11.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Spec 70 §11.1. A client on the same continent needs a tenth of a second.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);

/// A client that is still sending when it has its answer has this time to read that. Without it the socket is closed at once, and
/// bytes that nobody read make the system reset the connection, answer included. The default of the library is none; that of
/// actix-web's server is this one.
const LAST_READ: Duration = Duration::from_secs(1);

/// When the server stops, a handshake that has begun has this time: several times the way around the earth.
const LAST_HANDSHAKE: Duration = Duration::from_millis(500);

/// What the HTTP library needs to know of a connection.
type Entered<IO> = (Stream<IO>, Protocol, Option<SocketAddr>);

/// A service of a worker that answers the requests of a connection with what `app` makes. Its errors are the client's.
pub(super) fn plain<I, S, B>(
    app: impl Fn() -> I + 'static,
    connections: Connections,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = (), InitError = ()>
where
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig, Error = Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as actix_service::Service<Request>>::Future: 'static,
    B: MessageBody + 'static,
{
    fn_service(move |socket: TcpStream| {
        let entered = socket.set_nodelay(true).ok().and_then(|()| connections.arrive(socket));
        if let Some((_, connection)) = &entered {
            connection.established();
        }
        async move {
            let (socket, connection) = entered.ok_or(())?;
            let peer = socket.peer();
            Ok((Stream::new(socket, connection), Protocol::Http1, peer))
        }
    })
    .and_then(answering(app))
}

/// The same over TLS.
pub(super) fn secure<I, S, B>(
    app: impl Fn() -> I + 'static,
    tls: Arc<rustls::ServerConfig>,
    connections: Connections,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = (), InitError = ()>
where
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig, Error = Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as actix_service::Service<Request>>::Future: 'static,
    B: MessageBody + 'static,
{
    let mut acceptor = Acceptor::new(Arc::unwrap_or_clone(tls));
    acceptor.set_handshake_timeout(HANDSHAKE_TIMEOUT);
    apply_fn_factory(acceptor.map_err(drop), move |socket: TcpStream, tls| {
        // The end of an answer does not wait until the client has confirmed its beginning.
        let entered = socket.set_nodelay(true).ok().and_then(|()| connections.arrive(socket));
        let handshake = entered.map(|(socket, connection)| (socket.peer(), tls.call(socket), connection));
        let connections = connections.clone();
        async move {
            let (peer, handshake, connection) = handshake.ok_or(())?;
            let stream = tokio::select! {
                biased;
                stream = handshake => stream?,
                () = too_late(&connections) => return Err(()),
            };
            connection.established();
            Ok((Stream::new(stream, connection), Protocol::Http1, peer))
        }
    })
    .and_then(answering(app))
}

/// From a connection to its requests.
fn answering<IO, I, S, B>(
    app: impl Fn() -> I + 'static,
) -> impl ServiceFactory<Entered<IO>, Config = (), Response = (), Error = (), InitError = ()>
where
    IO: AsyncRead + AsyncWrite + Unpin + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig, Error = Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as actix_service::Service<Request>>::Future: 'static,
    B: MessageBody + 'static,
{
    while_needed(move || {
        HttpService::build()
            .keep_alive(IDLE_TIMEOUT)
            .client_request_timeout(HEAD_TIME)
            .client_disconnect_timeout(LAST_READ)
            // A client that goes away, as a browser tab that is closed, ends what it waits for at once.
            .h1_allow_half_closed(false)
            .on_connect_ext(|stream: &Stream<IO>, data| {
                data.insert(stream.course().clone());
            })
            .finish(map_config(app(), |()| AppConfig::default()))
    })
}

/// A service that is made with the first connection and gone with the last. The clock of the HTTP library ticks twice a
/// second as long as there is one, which would wake each worker of a process that nobody asks anything.
fn while_needed<S, C>(
    make: impl Fn() -> S + 'static,
) -> impl ServiceFactory<C, Config = (), Response = (), Error = (), InitError = ()>
where
    S: ServiceFactory<C, Config = (), Response = ()> + 'static,
    C: 'static,
{
    let (make, made) = (Rc::new(make), Rc::new(RefCell::new(Weak::<S::Service>::new())));
    fn_service(move |connection: C| {
        let (make, made) = (make.clone(), made.clone());
        async move {
            let present = made.borrow().upgrade();
            let service = match present {
                Some(service) => service,
                None => {
                    // Two that arrive at once may make one each: both work, and the later one is kept for others.
                    let service = Rc::new(make().new_service(()).await.map_err(drop)?);
                    *made.borrow_mut() = Rc::downgrade(&service);
                    service
                }
            };
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(drop)?;
            service.call(connection).await.map_err(drop)
        }
    })
}

async fn too_late(connections: &Connections) {
    connections.stopping().cancelled().await;
    sleep(LAST_HANDSHAKE).await;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use actix_service::{Service, fn_factory};
    use tokio::{
        sync::oneshot,
        task::{LocalSet, spawn_local, yield_now},
    };

    use super::*;

    /// How many services were made, and how many are there.
    #[derive(Default)]
    struct Count {
        made: Cell<usize>,
        there: Cell<usize>,
    }

    struct Counted(Rc<Count>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.there.set(self.0.there.get() - 1);
        }
    }

    /// A service whose connections last until their sender says so.
    fn lasting(
        count: Rc<Count>,
    ) -> impl ServiceFactory<oneshot::Receiver<()>, Config = (), Response = (), Error = (), InitError = ()> {
        while_needed(move || {
            let count = count.clone();
            fn_factory(move || {
                count.made.set(count.made.get() + 1);
                count.there.set(count.there.get() + 1);
                let there = Rc::new(Counted(count.clone()));
                async move {
                    Ok::<_, ()>(actix_service::fn_service(move |end: oneshot::Receiver<()>| {
                        let _there = &there;
                        async move { end.await.map_err(drop) }
                    }))
                }
            })
        })
    }

    #[tokio::test]
    async fn worker_service_exists_while_clients_are_connected() {
        let count = Rc::new(Count::default());
        let service = lasting(count.clone()).new_service(()).await.unwrap();
        LocalSet::new()
            .run_until(async {
                let connect = || {
                    let (end, ended) = oneshot::channel();
                    (end, spawn_local(service.call(ended)))
                };
                let counted = || (count.made.get(), count.there.get());
                assert_eq!(counted(), (0, 0), "no client is connected");

                let (first, one) = connect();
                yield_now().await;
                let (second, two) = connect();
                yield_now().await;
                assert_eq!(counted(), (1, 1), "both share one");
                first.send(()).unwrap();
                assert_eq!(one.await.unwrap(), Ok(()));
                assert_eq!(counted(), (1, 1), "the second is connected still");
                second.send(()).unwrap();
                assert_eq!(two.await.unwrap(), Ok(()));
                assert_eq!(counted(), (1, 0));

                let (third, three) = connect();
                yield_now().await;
                assert_eq!(counted(), (2, 1));
                third.send(()).unwrap();
                assert_eq!(three.await.unwrap(), Ok(()));
                assert_eq!(counted(), (2, 0));
            })
            .await;
    }
}

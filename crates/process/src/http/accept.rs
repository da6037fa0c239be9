//! From a TCP connection to its requests, for all HTTP servers. Unlike actix-web's `HttpServer`, it hands a [`Stream`]
//! to the HTTP library, counts connections from their first byte on, so that none is forgotten at the end, and keeps
//! the library's service only while clients are connected ([`while_needed`]). Decision record 0017.

use std::{
    cell::RefCell,
    future::poll_fn,
    net::SocketAddr,
    rc::{Rc, Weak},
    sync::Arc,
    time::Duration,
};

use actix_http::{HttpService, Protocol, Request};
use actix_service::{ServiceFactory, ServiceFactoryExt as _, apply_fn_factory, boxed::BoxServiceFactory, fn_service};
use actix_tls::accept::rustls_0_23::Acceptor;
use actix_web::{
    Error,
    body::BoxBody,
    dev::{Response, Service as _},
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

const IDLE_TIMEOUT: Duration = Duration::from_secs(90); // Spec 70 §11
/// Spec 70 §11.1. A client on the same continent needs a tenth of a second.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);

/// Time for a client that is still sending to read its answer. If the socket were closed at once, unread bytes would
/// make the system reset the connection, answer included.
const LAST_READ: Duration = Duration::from_secs(1);

/// Time for a handshake that has begun when the server stops: several times the way around the earth.
const LAST_HANDSHAKE: Duration = Duration::from_millis(500);

/// What answers requests: an `App` of actix-web, whose type has no name.
pub(super) type Application = BoxServiceFactory<(), Request, Response<BoxBody>, Error, ()>;

type Entered<IO> = (Stream<IO>, Protocol, Option<SocketAddr>);

pub(super) fn plain(
    app: impl Fn() -> Application + 'static,
    connections: Connections,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = (), InitError = ()> {
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

pub(super) fn secure(
    app: impl Fn() -> Application + 'static,
    tls: Arc<rustls::ServerConfig>,
    connections: Connections,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = (), InitError = ()> {
    let mut acceptor = Acceptor::new(Arc::unwrap_or_clone(tls));
    acceptor.set_handshake_timeout(HANDSHAKE_TIMEOUT);
    apply_fn_factory(acceptor.map_err(drop), move |socket: TcpStream, tls| {
        // The end of an answer does not wait until the client has acknowledged its beginning.
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

fn answering<IO>(
    app: impl Fn() -> Application + 'static,
) -> impl ServiceFactory<Entered<IO>, Config = (), Response = (), Error = (), InitError = ()>
where
    IO: AsyncRead + AsyncWrite + Unpin + 'static,
{
    while_needed(move || {
        HttpService::build()
            .keep_alive(IDLE_TIMEOUT)
            .client_request_timeout(HEAD_TIME)
            .client_disconnect_timeout(LAST_READ)
            // A client that goes away, such as a closed browser tab, frees its pending answers at once.
            .h1_allow_half_closed(false)
            .on_connect_ext(|stream: &Stream<IO>, data| {
                data.insert(stream.course().clone());
            })
            .finish(app())
    })
}

/// A service that exists while there are connections: its clock ticks twice a second, which would wake idle workers.
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
                    // Two simultaneous connections may create one service each: both work, and the later one is kept.
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

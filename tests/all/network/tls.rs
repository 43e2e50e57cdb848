//! A server with TLS on loopback, at localhost and 127.0.0.1, whose authority is `tls/ca.pem`.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Responds to each connection with the bytes that `answer` returns for its path. Returns the address.
pub(crate) fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let certificate = CertificateDer::from(include_bytes!("tls/cert.der").as_slice());
    let key = PrivateKeyDer::try_from(include_bytes!("tls/key.der").as_slice()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            let (mut request, mut chunk) = (Vec::new(), [0; 4096]);
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut chunk) {
                    Ok(read) if read > 0 => request.extend_from_slice(&chunk[..read]),
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&request);
            // A client that does not trust the certificate sends no request.
            let Some(path) = request.split(' ').nth(1) else { continue };
            let _ = stream.write_all(&answer(path));
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    address
}

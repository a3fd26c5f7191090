//! Certificates of the tests, made for each one.

use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use rcgen::{
    CertificateParams, Error, PKCS_ECDSA_P256_SHA256, PublicKeyData, SerialNumber, SignatureAlgorithm, SigningKey,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::webhook::tls::{Tls, config};

/// A key that makes certificates.
struct Key(EcdsaKeyPair, Vec<u8>);

impl Key {
    fn new() -> Self {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref()).unwrap();
        Self(key, pkcs8.as_ref().to_vec())
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.0.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec())
    }
}

/// A server with a certificate of this name, and that certificate.
pub(super) fn server(name: &str) -> (TlsAcceptor, CertificateDer<'static>) {
    let key = Key::new();
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.serial_number = Some(SerialNumber::from(1));
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let private = PrivatePkcs8KeyDer::from(key.1).into();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_no_client_auth().with_single_cert(vec![certificate.clone()], private).unwrap();
    // The client's only protocol: a server that has others alone rejects it.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (TlsAcceptor::from(Arc::new(config)), certificate)
}

/// A client that trusts this certificate.
pub(super) fn client(trusted: CertificateDer<'static>) -> Arc<Tls> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    Arc::new(Tls::new(config().unwrap().with_root_certificates(roots).with_no_client_auth()))
}

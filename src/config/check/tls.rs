//! Whether what is said of TLS fits together, and whether the files are of use.

use super::Check;
use crate::config::{Tls, Vector};
use crate::push::{server_name, system_roots};
use crate::tls::{FileError, certificates, fits, misfit, signing_key};

impl Check {
    pub(super) fn tls(&mut self, vector: &Vector) {
        let tls = &vector.tls;
        if vector.endpoints.iter().any(|endpoint| endpoint.tls) {
            self.identity(tls);
            self.trust(tls);
            for endpoint in vector.endpoints.iter().filter(|endpoint| endpoint.tls) {
                let name = server_name(endpoint, tls);
                self.file("vector.tls.server_name", name.map_err(FileError));
            }
        } else if !vector.endpoints.is_empty() {
            self.useless(tls);
        }
    }

    fn identity(&mut self, tls: &Tls) {
        let crt = tls.crt_file.as_deref().map(certificates).transpose();
        let key = tls.key_file.as_deref().map(signing_key).transpose();
        let crt = self.file("vector.tls.crt_file", crt).flatten();
        let key = self.file("vector.tls.key_file", key).flatten();
        match (&tls.crt_file, &tls.key_file) {
            (Some(crt_file), Some(key_file)) => {
                let right = crt.zip(key).is_none_or(|(crt, key)| fits(&crt, &key));
                self.that(right, "vector.tls.key_file", &misfit(crt_file, key_file));
            }
            (Some(_), None) => {
                let problem = "the certificate in vector.tls.crt_file is of no use without its private key";
                self.that(false, "vector.tls.key_file", &format!("{problem}: name the key's file"));
            }
            (None, Some(_)) => {
                let problem = "the key in vector.tls.key_file is of no use without its certificate";
                self.that(false, "vector.tls.crt_file", &format!("{problem}: name the certificate's file"));
            }
            (None, None) => {}
        }
    }

    fn trust(&mut self, tls: &Tls) {
        match &tls.ca_file {
            Some(path) => self.file("vector.tls.ca_file", certificates(path).map(drop)),
            None if tls.verify_certificate => self.file("vector.tls.ca_file", system_roots().map(drop)),
            None => None,
        };
    }

    /// Somebody who sets these believes that the connection is safe.
    fn useless(&mut self, tls: &Tls) {
        let default = Tls::default();
        let set = [
            ("ca_file", tls.ca_file != default.ca_file),
            ("crt_file", tls.crt_file != default.crt_file),
            ("key_file", tls.key_file != default.key_file),
            ("server_name", tls.server_name != default.server_name),
            ("verify_certificate", tls.verify_certificate != default.verify_certificate),
            ("verify_hostname", tls.verify_hostname != default.verify_hostname),
        ];
        let problem = "every endpoint is http, which is plaintext: write https:// in vector.endpoints, or leave this out";
        for (name, set) in set {
            self.that(!set, &format!("vector.tls.{name}"), problem);
        }
    }

    fn file<T>(&mut self, path: &str, result: Result<T, FileError>) -> Option<T> {
        result.map_err(|error| self.that(false, path, &error.to_string())).ok()
    }
}

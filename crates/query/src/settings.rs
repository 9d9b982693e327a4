//! The environment variables that configure a lake's storage.

use std::ffi::{OsStr, OsString};

/// A cloud whose storage a lake can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cloud {
    Amazon,
    Google,
    Microsoft,
}

impl Cloud {
    /// The cloud of an address with this scheme and host; `None` for others.
    ///
    /// Source: the crate object_store, version 0.13, `ObjectStoreScheme::parse`.
    pub(crate) fn of(scheme: &str, host: &str) -> Option<Self> {
        let is_below =
            |domains: &[&str]| scheme == "https" && domains.iter().any(|domain| host.ends_with(domain));
        match scheme {
            "s3" | "s3a" => Some(Self::Amazon),
            "gs" => Some(Self::Google),
            "az" | "adl" | "azure" | "abfs" | "abfss" => Some(Self::Microsoft),
            _ if is_below(&["amazonaws.com", "r2.cloudflarestorage.com"]) => Some(Self::Amazon),
            _ if is_below(&[".core.windows.net", ".fabric.microsoft.com"]) => Some(Self::Microsoft),
            _ => None,
        }
    }

    /// The beginning of the names of its variables. Others, such as `TOKEN` or `TIMEOUT`, belong to other programs, although the
    /// library would take them for settings.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Amazon => "AWS_",
            Self::Google => "GOOGLE_",
            Self::Microsoft => "AZURE_",
        }
    }

    /// The beginnings of the names of variables with credentials, or that say that none are needed.
    const fn credentials(self) -> &'static [&'static str] {
        match self {
            Self::Amazon => {
                &["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_", "AWS_SKIP_SIGNATURE"]
            }
            Self::Google => {
                &["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SKIP_SIGNATURE"]
            }
            Self::Microsoft => &[
                "AZURE_STORAGE_ACCOUNT_KEY",
                "AZURE_STORAGE_ACCESS_KEY",
                "AZURE_STORAGE_MASTER_KEY",
                "AZURE_STORAGE_SAS_",
                "AZURE_STORAGE_TOKEN",
                "AZURE_STORAGE_CLIENT_SECRET",
                "AZURE_CLIENT_SECRET",
                "AZURE_FEDERATED_TOKEN_FILE",
                "AZURE_USE_AZURE_CLI",
                "AZURE_STORAGE_USE_EMULATOR",
                "AZURE_SKIP_SIGNATURE",
            ],
        }
    }

    /// The name of the first variable that a user would set.
    pub(crate) const fn usual(self) -> &'static str {
        match self {
            Self::Amazon => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            Self::Google => "GOOGLE_APPLICATION_CREDENTIALS",
            Self::Microsoft => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
        }
    }
}

/// The variable of Amazon's own tools that forbids to ask the metadata service.
///
/// Source: the guide of the AWS SDKs and tools, "IMDS credential provider".
const METADATA_DISABLED: &str = "AWS_EC2_METADATA_DISABLED";

/// The settings of a cloud's storage, by the names that the library expects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreSettings {
    pub(crate) values: Vec<(String, String)>,
    /// The cloud whose metadata service is asked for credentials, because none are set.
    pub(crate) asked: Option<Cloud>,
}

impl StoreSettings {
    /// Takes the settings of a cloud from environment variables.
    ///
    /// # Errors
    /// If a setting is not UTF-8, or there are no credentials and the metadata service may not be asked.
    pub(crate) fn of(
        cloud: Cloud,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, String> {
        let mut settings = Self { values: Vec::new(), asked: Some(cloud) };
        let mut may_ask = true;
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(cloud.prefix())) else { continue };
            let value = text(name, &value)?;
            may_ask &= !(name == METADATA_DISABLED && value.eq_ignore_ascii_case("true"));
            if cloud.credentials().iter().any(|known| name.starts_with(known)) && !value.is_empty() {
                settings.asked = None;
            }
            settings.values.push((name.to_ascii_lowercase(), value));
        }
        match settings.asked {
            Some(cloud) if !may_ask => Err(format!(
                "missing credentials: expected {}, and {METADATA_DISABLED} forbids to ask the metadata service",
                cloud.usual()
            )),
            _ => Ok(settings),
        }
    }
}

fn text(name: &str, value: &OsStr) -> Result<String, String> {
    value.to_str().map(str::to_owned).ok_or_else(|| format!("expected UTF-8 in {name}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn settings(cloud: Cloud, variables: &[(&str, &[u8])]) -> Result<StoreSettings, String> {
        let variables =
            variables.iter().map(|(name, value)| (name.into(), OsString::from_vec(value.to_vec())));
        StoreSettings::of(cloud, variables)
    }

    #[test]
    fn only_the_variables_of_the_cloud_are_settings() {
        let others: [(&str, &[u8]); 7] = [
            ("TOKEN", b"x"),
            ("ENDPOINT", b"http://elsewhere"),
            ("ALLOW_HTTP", b"true"),
            ("TIMEOUT", b"5"),
            ("ODD", b"\xff\xfe"),
            ("aws_endpoint", b"http://elsewhere"),
            ("GOOGLE_BUCKET", b"other"),
        ];
        let found = settings(Cloud::Amazon, &others).unwrap();
        assert_eq!(found, StoreSettings { values: Vec::new(), asked: Some(Cloud::Amazon) });
        let known: [(&str, &[u8]); 2] = [("AWS_ACCESS_KEY_ID", b"me"), ("AWS_ALLOW_HTTP", b"true")];
        let found = settings(Cloud::Amazon, &known).unwrap();
        let values = [("aws_access_key_id", "me"), ("aws_allow_http", "true")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        assert_eq!(found, StoreSettings { values, asked: None });
        let error = settings(Cloud::Amazon, &[("AWS_REGION", b"\xff")]).unwrap_err();
        assert_eq!(error, "expected UTF-8 in AWS_REGION");
    }

    #[test]
    fn the_metadata_service_is_asked_only_without_credentials() {
        for (cloud, name, asked) in [
            (Cloud::Amazon, "AWS_REGION", true),
            (Cloud::Amazon, "AWS_WEB_IDENTITY_TOKEN_FILE", false),
            (Cloud::Google, "GOOGLE_SERVICE_ACCOUNT", false),
            (Cloud::Microsoft, "AZURE_STORAGE_ACCOUNT_NAME", true),
            (Cloud::Microsoft, "AZURE_STORAGE_ACCOUNT_KEY", false),
        ] {
            let found = settings(cloud, &[(name, b"x")]).unwrap();
            assert_eq!(found.asked.is_some(), asked, "{name}");
        }
        let error = settings(Cloud::Amazon, &[("AWS_EC2_METADATA_DISABLED", b"true")]).unwrap_err();
        assert!(error.starts_with("missing credentials: expected AWS_ACCESS_KEY_ID and "), "{error}");
    }

    #[test]
    fn addresses_tell_their_cloud() {
        for (scheme, host, cloud) in [
            ("s3", "bucket", Some(Cloud::Amazon)),
            ("gs", "bucket", Some(Cloud::Google)),
            ("abfss", "c", Some(Cloud::Microsoft)),
            ("https", "me.blob.core.windows.net", Some(Cloud::Microsoft)),
            ("https", "b.s3.amazonaws.com", Some(Cloud::Amazon)),
            ("https", "example.com", None),
            ("http", "b.s3.amazonaws.com", None),
        ] {
            assert_eq!(Cloud::of(scheme, host), cloud, "{scheme}://{host}");
        }
    }
}

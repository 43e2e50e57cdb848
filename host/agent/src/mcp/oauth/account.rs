//! The login of one server: stored encrypted, renewed before it expires, and bound to the server's address and issuer.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::challenge::Challenge;
use super::discovery::{AuthorityMetadata, discover};
use super::fetch::{LoginReach, is_loopback};
use super::token::{self, KeptClient, OauthClient, Tokens};
use super::{OauthError, flow};
use kiso_base::clock::now_ms;
use kiso_base::home::{Home, HomeLock};
use kiso_store::secret::{SecretValue, Secrets, Vault};
use kiso_store::store::{McpLoginRow, Store};

/// Seconds before expiry at which a token is renewed; a fifth of a short lifetime.
const MARGIN_S: u64 = 60;

/// Maximum seconds for a request of a login, whatever a call may take.
const MAX_REQUEST_S: u64 = 30;

/// How long another process may take to renew a token.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server's login, if it has one. Clones are cheap.
#[derive(Debug, Clone)]
pub(crate) struct Account(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    server: String,
    url: String,
    uri: Uri,
    reach: LoginReach,
    /// Client id from `config.toml`.
    client_id: Option<String>,
    /// The variable of the client secret, and its value.
    secret: Option<(String, Option<SecretValue>)>,
    home: Home,
    store: Store,
    vault: Vault,
    renewing: Mutex<()>,
}

/// The encrypted data.
#[derive(Serialize, Deserialize)]
struct KeptLogin {
    issuer: String,
    /// Address of the server's metadata, as the server named it.
    metadata: Option<String>,
    client: KeptClient,
    access: String,
    refresh: Option<String>,
    /// When to renew the token, if its lifetime is known.
    renew_ms: Option<i64>,
    scope: Option<String>,
    /// Additional scope that a call needed; the next login requests it.
    wanted: Option<String>,
}

/// A token for a request.
#[derive(Debug, Clone)]
pub(crate) struct Bearer {
    server: String,
    access: SecretValue,
    refresh: Option<SecretValue>,
}

/// The state of a login, as known without a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginState {
    None,
    /// Contains the issuer of the login.
    LoggedIn(String),
    /// Contains the reason.
    Unusable(String),
}

impl Bearer {
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.access.expose())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns the secrets to remove from all texts of the server.
    pub(crate) fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add_key(format!("{}_access_token", self.server), self.access.clone());
        if let Some(refresh) = &self.refresh {
            secrets.add_key(format!("{}_refresh_token", self.server), refresh.clone());
        }
        secrets
    }
}

/// Parameters of an account.
pub(crate) struct AccountSetup<'a> {
    pub server: &'a str,
    pub url: &'a str,
    pub timeout_s: u64,
    pub client_id: Option<String>,
    pub secret: Option<(String, Option<SecretValue>)>,
    pub home: &'a Home,
    pub store: &'a Store,
}

impl Account {
    pub(crate) fn new(setup: AccountSetup<'_>) -> Account {
        let AccountSetup { server, url, timeout_s, client_id, secret, home, store } = setup;
        let uri: Uri = url.parse().unwrap_or_default();
        let reach = LoginReach { local: is_loopback(&uri), timeout_s: timeout_s.min(MAX_REQUEST_S) };
        let (home, store, vault) = (home.clone(), store.clone(), Vault::open(home));
        let (server, url) = (server.to_owned(), url.to_owned());
        let renewing = Mutex::default();
        Account(Arc::new(Inner { server, url, uri, reach, client_id, secret, home, store, vault, renewing }))
    }

    /// Returns the token for a request, renewed if it expires soon; `None` without a login.
    pub(crate) async fn bearer(&self) -> Result<Option<Bearer>, OauthError> {
        let Some(kept) = self.0.read().await? else { return Ok(None) };
        let bearer = self.0.bearer(&kept);
        match kept.renew_ms {
            Some(at) if at <= now_ms() => self.renewed(&bearer).await.map(Some),
            _ => Ok(Some(bearer)),
        }
    }

    /// Replaces this token by a new one. Concurrent callers get the same one. The renewal is completed and stored even if nobody
    /// waits any more, because the authorization server invalidates the old refresh token.
    pub(crate) async fn renewed(&self, old: &Bearer) -> Result<Bearer, OauthError> {
        let (inner, old) = (self.0.clone(), old.access.clone());
        let renewed = tokio::spawn(async move { inner.renew(&old).await });
        renewed.await.map_err(|_| OauthError::Kept("renewing it was interrupted".to_owned()))?
    }

    /// Stores the additional scope that a call needed, so that the next login requests it.
    pub(crate) async fn wants(&self, scope: &str) -> Result<(), OauthError> {
        let _renewing = self.0.renewing.lock().await;
        let _lock = self.0.lock().await?;
        let Some(mut kept) = self.0.read().await? else { return Ok(()) };
        kept.wanted = flow::union(&[kept.wanted.as_deref(), Some(scope)]);
        self.0.write(&kept).await
    }

    /// Starts a login by a person. `challenge` is the server's refusal.
    pub(crate) async fn log_in(
        &self,
        challenge: Challenge,
        told: impl FnOnce(&str),
        pasted: impl Future<Output = String>,
    ) -> Result<String, OauthError> {
        let inner = &self.0;
        inner.reach.address(&inner.url)?;
        let at = discover(inner.reach, &inner.uri, &challenge).await?;
        // A login that cannot be read is replaced.
        let before = inner.read().await.ok().flatten().filter(|kept| kept.issuer == at.issuer);
        let more = before.as_ref().and_then(|kept| kept.wanted.as_deref());
        let had = before.as_ref().filter(|kept| kept.wanted.is_some()).and_then(|kept| kept.scope.as_deref());
        let asked = challenge.scope.as_deref().or(at.scopes.as_deref());
        let scope = flow::union(&[asked, had, more]);
        let client = inner.client()?;
        let (client, tokens) = flow::log_in(inner.reach, &at, client, scope.as_deref(), told, pasted).await?;
        let _renewing = inner.renewing.lock().await;
        let _lock = inner.lock().await?;
        let issuer = at.issuer.clone();
        inner.write(&kept(&at, challenge.resource_metadata, client, tokens, None)).await?;
        Ok(issuer)
    }

    /// Deletes the login, and notifies the authorization server; returns whether there was one, and why the server could not be
    /// notified.
    pub(crate) async fn log_out(&self) -> Result<(bool, Option<OauthError>), OauthError> {
        let inner = &self.0;
        let _renewing = inner.renewing.lock().await;
        let _lock = inner.lock().await?;
        let kept = inner.read().await.ok().flatten();
        let there = inner.forget().await?;
        let Some(kept) = kept else { return Ok((there, None)) };
        let revoked = async {
            let at = inner.discover(&kept).await?;
            let token = kept.refresh.clone().unwrap_or(kept.access);
            token::revoke(inner.reach, &at, &inner.kept_client(kept.client), &SecretValue::new(token)).await
        };
        Ok((there, revoked.await.err()))
    }

    pub(crate) fn state(&self) -> LoginState {
        let inner = &self.0;
        let row = inner.store.read_blocking(|view| view.mcp_login(&inner.server));
        match row.map_err(|error| OauthError::Kept(error.to_string())).and_then(|row| inner.open(row)) {
            Ok(None) => LoginState::None,
            Ok(Some(kept)) => LoginState::LoggedIn(super::super::shown(&kept.issuer)),
            Err(error) => LoginState::Unusable(error.to_string()),
        }
    }
}

impl Inner {
    /// Binds the encrypted data to this server and URL, whatever the store contains.
    fn purpose(&self) -> String {
        format!("mcp login/{}/{}", self.server, self.url)
    }

    fn over(&self, why: &str) -> OauthError {
        OauthError::Over(self.server.clone(), why.to_owned())
    }

    async fn read(&self) -> Result<Option<KeptLogin>, OauthError> {
        let server = self.server.clone();
        let row = self.store.read(move |view| view.mcp_login(&server)).await;
        self.open(row.map_err(|error| OauthError::Kept(error.to_string()))?)
    }

    fn open(&self, row: Option<McpLoginRow>) -> Result<Option<KeptLogin>, OauthError> {
        let Some(row) = row else { return Ok(None) };
        if row.source != self.url {
            return Err(self.over("url in config.toml is another one now"));
        }
        let closed = "it was sealed with another key";
        let plain = self.vault.unseal(&self.purpose(), &row.sealed).map_err(|_| self.over(closed))?;
        let kept: KeptLogin = serde_json::from_slice(&plain).map_err(|_| self.over("it cannot be read"))?;
        if self.client_id.as_ref().is_some_and(|id| *id != kept.client.id) {
            return Err(self.over("client_id in config.toml is another one now"));
        }
        Ok(Some(kept))
    }

    async fn write(&self, kept: &KeptLogin) -> Result<(), OauthError> {
        let failed = |error: String| OauthError::Kept(error);
        let plain = serde_json::to_vec(kept).map_err(|error| failed(error.to_string()))?;
        let sealed = self.vault.seal(&self.purpose(), &plain).map_err(|error| failed(error.to_string()))?;
        let (server, row) = (self.server.clone(), McpLoginRow { source: self.url.clone(), sealed });
        let written = self.store.write(move |tx| tx.put_mcp_login(&server, &row, now_ms())).await;
        written.map_err(|error| failed(error.to_string()))
    }

    async fn forget(&self) -> Result<bool, OauthError> {
        let server = self.server.clone();
        let gone = self.store.write(move |tx| tx.delete_mcp_login(&server)).await;
        gone.map_err(|error| OauthError::Kept(error.to_string()))
    }

    /// Held while the login changes: another process may be renewing the same token, which can be used once.
    async fn lock(&self) -> Result<HomeLock, OauthError> {
        let failed = |error: String| OauthError::Kept(error);
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let taken = self.home.try_lock_login(&self.server).map_err(|error| failed(error.to_string()))?;
            match taken {
                Some(lock) => return Ok(lock),
                None if end <= tokio::time::Instant::now() => {
                    return Err(failed("another process is changing it".to_owned()));
                }
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    fn bearer(&self, kept: &KeptLogin) -> Bearer {
        let secret = |text: &String| SecretValue::new(text.clone());
        let (access, refresh) = (secret(&kept.access), kept.refresh.as_ref().map(secret));
        Bearer { server: self.server.clone(), access, refresh }
    }

    /// Returns the client of `config.toml`.
    fn client(&self) -> Result<Option<OauthClient>, OauthError> {
        let Some(id) = self.client_id.clone() else { return Ok(None) };
        let secret = match &self.secret {
            None => None,
            Some((variable, None)) => return Err(OauthError::Variable(variable.clone())),
            Some((_, secret)) => secret.clone(),
        };
        Ok(Some(OauthClient { id, secret, auth: None }))
    }

    /// Returns the client of a login. A secret from the environment is not stored with it.
    fn kept_client(&self, kept: KeptClient) -> OauthClient {
        let of_login = kept.secret.map(SecretValue::new);
        let secret = of_login.or_else(|| self.secret.as_ref().and_then(|(_, secret)| secret.clone()));
        OauthClient { id: kept.id, secret, auth: kept.auth }
    }

    async fn discover(&self, kept: &KeptLogin) -> Result<AuthorityMetadata, OauthError> {
        let challenge = Challenge { resource_metadata: kept.metadata.clone(), ..Challenge::default() };
        let at = discover(self.reach, &self.uri, &challenge).await?;
        // Tokens of one issuer are never sent to another.
        if at.issuer == kept.issuer { Ok(at) } else { Err(self.over("the server names another issuer now")) }
    }

    async fn renew(&self, old: &SecretValue) -> Result<Bearer, OauthError> {
        let _renewing = self.renewing.lock().await;
        let _lock = self.lock().await?;
        let Some(kept) = self.read().await? else { return Err(OauthError::None(self.server.clone())) };
        if kept.access != old.expose() {
            return Ok(self.bearer(&kept));
        }
        let Some(refresh) = kept.refresh.clone() else {
            return Err(self.over("its token has expired or was refused, and the server gave none to renew it with"));
        };
        let at = self.discover(&kept).await?;
        let client = self.kept_client(kept.client);
        let mut grant = vec![("grant_type", "refresh_token"), ("refresh_token", &refresh), ("resource", &at.resource)];
        grant.extend(kept.scope.as_deref().map(|scope| ("scope", scope)));
        let tokens = match token::tokens(self.reach, &at, &client, &grant).await {
            Ok(tokens) => tokens,
            Err(OauthError::Refused { code, .. }) if code == "invalid_grant" => {
                self.forget().await?;
                return Err(self.over("the authorization server does not renew it any more"));
            }
            Err(error) => return Err(error),
        };
        // A server that returns no new refresh token allows reusing the old one.
        let refresh = tokens.refresh.or_else(|| Some(SecretValue::new(refresh)));
        let tokens = Tokens { refresh, scope: tokens.scope.or(kept.scope), ..tokens };
        let renewed = self::kept(&at, kept.metadata, client, tokens, kept.wanted);
        self.write(&renewed).await?;
        Ok(self.bearer(&renewed))
    }
}

fn kept(
    at: &AuthorityMetadata,
    metadata: Option<String>,
    client: OauthClient,
    tokens: Tokens,
    wanted: Option<String>,
) -> KeptLogin {
    let in_ms = |life: u64| {
        let until = life.saturating_sub(MARGIN_S.min(life / 5));
        now_ms().saturating_add(i64::try_from(until).unwrap_or(i64::MAX).saturating_mul(1_000))
    };
    let owned = |value: &SecretValue| value.expose().to_owned();
    // The secret of a client from config.toml stays in the environment.
    let secret = client.secret.as_ref().filter(|_| client.auth.is_some()).map(owned);
    KeptLogin {
        issuer: at.issuer.clone(),
        metadata,
        client: KeptClient { id: client.id, secret, auth: client.auth },
        access: owned(&tokens.access),
        refresh: tokens.refresh.as_ref().map(owned),
        renew_ms: tokens.expires_s.map(in_ms),
        scope: tokens.scope,
        wanted,
    }
}

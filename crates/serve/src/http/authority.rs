//! Strict parsing of hosts and ports as browsers write them. Names are compared as a whole and addresses as numbers,
//! so that `127.evil.com`, `0x7f.1` and `localhost.` are not mistaken for this server.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// A host with an optional port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAuthority {
    host: AuthorityHost,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AuthorityHost {
    Ip(IpAddr),
    /// In lower case, without a trailing dot.
    Name(String),
}

/// The text that is not a valid host with an optional port.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is no name or address, with or without a port")]
pub struct InvalidAuthority(String);

impl FromStr for HttpAuthority {
    type Err = InvalidAuthority;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_authority(text).ok_or_else(|| InvalidAuthority(text.to_owned()))
    }
}

impl fmt::Display for HttpAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            AuthorityHost::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]")?,
            AuthorityHost::Ip(IpAddr::V4(ip)) => write!(f, "{ip}")?,
            AuthorityHost::Name(name) => f.write_str(name)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// The authorities a server answers to.
#[derive(Clone, Debug)]
pub struct ServerAuthorities {
    listening: SocketAddr,
    named: Vec<HttpAuthority>,
}

impl ServerAuthorities {
    /// Combines the address it listens on with additional configured names.
    pub fn new(listening: SocketAddr, named: Vec<HttpAuthority>) -> Self {
        ServerAuthorities { listening, named }
    }

    /// Returns true if the authority is this server.
    pub fn answers_to(&self, authority: &HttpAuthority) -> bool {
        self.is_listening(authority) || self.is_named(authority)
    }

    /// Returns true if the authority is a configured name. Such a name may belong to a proxy that terminates TLS.
    pub fn is_named(&self, authority: &HttpAuthority) -> bool {
        let ours = Some(self.listening.port());
        self.named.iter().any(|named| {
            let port_fits = named.port == authority.port;
            let port_fits = port_fits || named.port.is_none() && authority.port == ours;
            named.host == authority.host && port_fits
        })
    }

    fn is_listening(&self, authority: &HttpAuthority) -> bool {
        if authority.port.unwrap_or(80) != self.listening.port() {
            return false;
        }
        let (mine, everywhere) = (self.listening.ip(), self.listening.ip().is_unspecified());
        match &authority.host {
            AuthorityHost::Ip(ip) if everywhere => {
                [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)].contains(ip)
            }
            AuthorityHost::Ip(ip) => *ip == mine,
            AuthorityHost::Name(name) => name == "localhost" && (everywhere || mine.is_loopback()),
        }
    }
}

fn parse_authority(text: &str) -> Option<HttpAuthority> {
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, port) = rest.split_once(']')?;
        let ip: Ipv6Addr = inside.parse().ok()?;
        let port = match port {
            "" => None,
            port => Some(parse_port(port.strip_prefix(':')?)?),
        };
        return Some(HttpAuthority { host: AuthorityHost::Ip(ip.into()), port });
    }
    let (host, port) = match text.split_once(':') {
        None => (text, None),
        Some((host, port)) => (host, Some(parse_port(port)?)),
    };
    let host = match host.parse::<Ipv4Addr>() {
        Ok(ip) => AuthorityHost::Ip(ip.into()),
        Err(_) if is_host_name(host) => AuthorityHost::Name(host.to_ascii_lowercase()),
        Err(_) => return None,
    };
    Some(HttpAuthority { host, port })
}

/// Parses a port: digits without a leading zero.
fn parse_port(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| plain)
}

/// Returns true for a name of letters, digits, hyphens and underscores. Browsers treat a host whose last label is a
/// number as an IP address, whatever its notation, so these are refused.
fn is_host_name(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    host.len() <= 253 && host.split('.').all(is_label) && !is_number
}

fn is_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !label.is_empty() && label.len() <= 63 && label.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(listening: &str, named: &[&str], text: &str, expect: bool) {
        let named = named.iter().map(|name| name.parse().unwrap()).collect();
        let ours = ServerAuthorities::new(listening.parse().unwrap(), named);
        let is_ours = text.parse().is_ok_and(|authority| ours.answers_to(&authority));
        assert_eq!(is_ours, expect, "{text:?} at {listening}");
    }

    #[test]
    fn only_the_very_address_is_ours() {
        let good = ["127.0.0.1:7757", "localhost:7757", "LOCALHOST:7757"];
        for text in good {
            check("127.0.0.1:7757", &[], text, true);
        }
        let bad = [
            "",
            ":7757",
            "127.0.0.1",
            "127.0.0.1:",
            "127.0.0.1:80",
            "127.0.0.1:07757",
            "127.0.0.1:+7757",
            "127.0.0.1:7757:7757",
            "127.0.0.1:17757",
            "127.0.0.1:77570",
            "127.0.0.2:7757",
            "127.1:7757",
            "127.0.0.01:7757",
            "0177.0.0.1:7757",
            "0x7f.0.0.1:7757",
            "0x7f000001:7757",
            "2130706433:7757",
            "017700000001:7757",
            "0.0.0.0:7757",
            "0:7757",
            "[::1]:7757",
            "[::ffff:127.0.0.1]:7757",
            "[::ffff:7f00:1]:7757",
            "[::]:7757",
            "::1:7757",
            "[127.0.0.1]:7757",
            "[::1%25lo]:7757",
            "[::1]7757",
            "127.evil.com:7757",
            "127.0.0.1.evil.com:7757",
            "127.0.0.1.nip.io:7757",
            "localhost.evil.com:7757",
            "localhost.:7757",
            "127.0.0.1.:7757",
            "evil.com:7757",
            "user@127.0.0.1:7757",
            "127.0.0.1:7757@evil.com",
            "127.0.0.1:7757/",
            "127.0.0.1:7757#x",
            "127.0.0.1:7757,evil.com",
            " 127.0.0.1:7757",
            "127.0.0.1 :7757",
            "127。0。0。1:7757",
            "①27.0.0.1:7757",
            "loc%61lhost:7757",
            "localhost\0:7757",
            "local_host:7757",
            "*:7757",
        ];
        for text in bad {
            check("127.0.0.1:7757", &[], text, false);
        }
    }

    #[test]
    fn an_address_of_the_sixth_version_is_compared_as_a_number() {
        check("[::1]:7757", &[], "[::1]:7757", true);
        check("[::1]:7757", &[], "[0:0:0:0:0:0:0:1]:7757", true);
        check("[::1]:7757", &[], "localhost:7757", true);
        check("[::1]:7757", &[], "127.0.0.1:7757", false);
        check("[::1]:7757", &[], "[::2]:7757", false);
    }

    #[test]
    fn a_port_is_left_out_where_it_is_the_usual_one() {
        check("127.0.0.1:80", &[], "127.0.0.1", true);
        check("127.0.0.1:80", &[], "127.0.0.1:80", true);
        check("127.0.0.1:7757", &[], "localhost", false);
    }

    #[test]
    fn who_listens_everywhere_answers_to_loopback_and_to_names_that_were_given() {
        let named = ["rep.example.com", "192.168.1.5", "tunnel.example:9000"];
        let yes = [
            "rep.example.com",
            "REP.example.com:7757",
            "192.168.1.5:7757",
            "tunnel.example:9000",
            "127.0.0.1:7757",
            "localhost:7757",
            "[::1]:7757",
        ];
        for text in yes {
            check("0.0.0.0:7757", &named, text, true);
        }
        let no = [
            "0.0.0.0:7757",
            "rep.example.com:8080",
            "a.rep.example.com:7757",
            "rep.example.com.:7757",
            "192.168.1.6:7757",
            "tunnel.example",
            "tunnel.example:7757",
            "example.com:7757",
            "127.0.0.2:7757",
        ];
        for text in no {
            check("0.0.0.0:7757", &named, text, false);
        }
    }

    #[test]
    fn what_is_given_as_a_name_has_to_be_one() {
        for text in
            ["", "http://x", "x/", "*.example.com", "a..b", "x:0", "x:65536", "x y", "1.2.3"]
        {
            assert!(text.parse::<HttpAuthority>().is_err(), "{text:?}");
        }
        let round = |text: &str| text.parse::<HttpAuthority>().unwrap().to_string();
        assert_eq!(round("Rep.Example:8080"), "rep.example:8080");
        assert_eq!(round("[0::1]:1"), "[::1]:1");
    }
}

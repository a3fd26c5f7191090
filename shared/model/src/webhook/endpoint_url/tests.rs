//! Tests of endpoints' URLs.

use proptest::prelude::*;

use super::*;

fn name_of(error: &EndpointUrlError) -> &'static str {
    use EndpointUrlError as E;
    match error {
        E::TooLong(_) => "long",
        E::Scheme => "scheme",
        E::NotPunycode => "punycode",
        E::Character(_) => "character",
        E::Percent => "percent",
        E::Fragment => "fragment",
        E::Userinfo => "userinfo",
        E::Port(_) => "port",
        E::IpAddress(_) => "ip",
        E::Private(_) => "private",
        E::Host(_) => "host",
        E::NotLoopback => "loopback",
    }
}

#[test]
fn urls_that_lead_elsewhere_than_to_a_public_host_are_rejected_with_their_fault() {
    let faults = include_str!("faults.txt").lines().filter(|line| !line.is_empty());
    let mut count = 0;
    for line in faults {
        let (want, text) = line.split_once(' ').unwrap();
        let error = text.parse::<EndpointUrl>().expect_err(text);
        assert_eq!(name_of(&error), want, "{text}: {error}");
        count += 1;
    }
    assert!(count >= 90, "{count}");
    let long = format!("https://hooks.example.com/{}", "a".repeat(MAX_URL_CHARS - 25));
    assert_eq!(long.parse::<EndpointUrl>(), Err(EndpointUrlError::TooLong(2_049)));
    // The stored form has a `/` more.
    let start = "https://hooks.example.com?";
    let grows = format!("{start}{}", "a".repeat(MAX_URL_CHARS - start.len()));
    assert_eq!(grows.parse::<EndpointUrl>(), Err(EndpointUrlError::TooLong(2_049)));
    for text in [
        "https://hooks.example.com/a\nb",
        "https://hooks.example.com/\u{0}",
        "https://hooks.example.com/a\tb",
        "https://hooks.example.com\r\n",
    ] {
        assert!(text.parse::<EndpointUrl>().is_err(), "{text:?}");
    }
}

#[test]
fn urls_of_public_hosts_are_accepted_in_one_form() {
    let longest = format!("https://hooks.example.com/{}", "a".repeat(MAX_URL_CHARS - 26));
    for (text, form, host) in [
        ("https://hooks.example.com/bank", "https://hooks.example.com/bank", "hooks.example.com"),
        ("https://hooks.example.com", "https://hooks.example.com/", "hooks.example.com"),
        ("https://hooks.example.com?a=1", "https://hooks.example.com/?a=1", "hooks.example.com"),
        ("HTTPS://Hooks.Example.COM:443/A?b=C", "https://hooks.example.com/A?b=C", "hooks.example.com"),
        ("https://xn--bcher-kva.example.com/", "https://xn--bcher-kva.example.com/", "xn--bcher-kva.example.com"),
        ("https://example.xn--p1ai/%C3%A9", "https://example.xn--p1ai/%C3%A9", "example.xn--p1ai"),
        ("https://1.2.3.4.example.com/", "https://1.2.3.4.example.com/", "1.2.3.4.example.com"),
        ("https://0x7f.example.com/", "https://0x7f.example.com/", "0x7f.example.com"),
        ("https://localhost.example.com/@a:b", "https://localhost.example.com/@a:b", "localhost.example.com"),
        (longest.as_str(), longest.as_str(), "hooks.example.com"),
    ] {
        let url: EndpointUrl = text.parse().unwrap();
        assert_eq!((url.as_str(), url.host(), url.loopback_port()), (form, host, None));
        assert_eq!(form.parse::<EndpointUrl>(), Ok(url.clone()));
        assert_eq!(EndpointUrl::from_stored(form), Ok(url));
    }
}

#[test]
fn a_loopback_url_is_of_this_machine_and_names_its_port() {
    for (text, form, port) in [
        ("http://127.0.0.1:9000/hook?a=1", "http://127.0.0.1:9000/hook?a=1", 9000),
        ("http://127.0.0.1:1", "http://127.0.0.1:1/", 1),
        ("http://127.0.0.1:65535/", "http://127.0.0.1:65535/", 65_535),
    ] {
        let url = EndpointUrl::loopback(text).unwrap();
        assert_eq!((url.as_str(), url.host(), url.loopback_port()), (form, "127.0.0.1", Some(port)));
        assert_eq!(EndpointUrl::from_stored(form), Ok(url));
        assert_eq!(text.parse::<EndpointUrl>(), Err(EndpointUrlError::Scheme));
    }
    for text in [
        "http://127.0.0.1/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:080/",
        "http://127.0.0.1:+80/",
        "http://127.0.0.1:65536/",
        "http://127.0.0.2:80/",
        "http://localhost:80/",
        "http://[::1]:80/",
        "http://127.0.0.1:80@example.com/",
        "http://a@127.0.0.1:80/",
        "https://127.0.0.1:80/",
        "https://hooks.example.com/",
        "http://hooks.example.com:80/",
    ] {
        assert_eq!(EndpointUrl::loopback(text), Err(EndpointUrlError::NotLoopback), "{text}");
    }
    let start = "http://127.0.0.1:80?";
    for (extra, want) in [(1, Ok(2_048)), (0, Err(EndpointUrlError::TooLong(2_049)))] {
        let text = format!("{start}{}", "a".repeat(MAX_URL_CHARS - start.len() - extra));
        assert_eq!(EndpointUrl::loopback(&text).map(|url| url.as_str().len()), want);
    }
    assert_eq!(EndpointUrl::loopback("http://127.0.0.1:80/#a"), Err(EndpointUrlError::Fragment));
}

/// A stored URL can be read, even if this version would not accept it. The connector checks its addresses.
#[test]
fn a_stored_url_is_read_whatever_is_accepted_now() {
    let long = format!("https://hooks.example.com/?{}", "a".repeat(3_000));
    let long_loopback = format!("http://127.0.0.1:80/?{}", "a".repeat(3_000));
    for (text, host, port) in [
        (long.as_str(), "hooks.example.com", None),
        (long_loopback.as_str(), "127.0.0.1", Some(80)),
        ("https://hooks.corp/", "hooks.corp", None),
    ] {
        assert!(text.parse::<EndpointUrl>().is_err(), "{text}");
        let url = EndpointUrl::from_stored(text).unwrap();
        assert_eq!((url.as_str(), url.host(), url.loopback_port()), (text, host, port));
    }
    for text in ["", "ftp://hooks.example.com/", "http://hooks.example.com/", "https://", "https:///bank"] {
        assert!(EndpointUrl::from_stored(text).is_err(), "{text:?}");
    }
}

proptest! {
    #[test]
    fn what_is_accepted_has_a_name_as_its_host(text in "https://[a-zA-Z0-9.:@%\\[\\]xX-]{1,20}(/[a-z%#]{0,3})?") {
        if let Ok(url) = text.parse::<EndpointUrl>() {
            prop_assert!(url.host().parse::<std::net::IpAddr>().is_err());
            let last = url.host().rsplit('.').next().unwrap_or_default();
            prop_assert!(last.starts_with("xn--") || last.chars().all(|c| c.is_ascii_lowercase()), "{}", url);
            prop_assert!(url.host().contains('.'));
            let start = format!("https://{}/", url.host());
            prop_assert!(url.as_str().starts_with(&start));
            prop_assert_eq!(url.as_str().parse::<EndpointUrl>(), Ok(url));
        }
    }
}

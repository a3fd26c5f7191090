//! Tests of global addresses.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

/// The first and last address of each prefix that is not global.
const NOT_GLOBAL: &str = "
    0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 100.100.100.200 127.0.0.1 127.255.255.255 169.254.0.0
    169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.9 192.0.0.10 192.0.0.170 192.0.0.192 192.0.0.255
    192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.0 192.168.255.255 192.175.48.1 198.18.0.0 198.19.255.255 198.51.100.1
    203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.0 255.255.255.254 255.255.255.255
    :: ::1 ::2 ::7f00:1 ::8.8.8.8 ::ffff:0.0.0.0 ::ffff:127.0.0.1 ::ffff:10.1.2.3 ::ffff:169.254.169.254 ::ffff:100.64.0.1
    ::ffff:0:8.8.8.8 64:ff9b::7f00:1 64:ff9b::8.8.8.8 64:ff9b:1::1 64:ff9b:1:ffff:ffff:ffff:ffff:ffff 100::1 100:0:0:1::1
    200::1 400::1 1000::1 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001::1 2001:0:7f00:1:: 2001:1::1 2001:2::1 2001:3::1 2001:4:112::1
    2001:10::1 2001:1f:ffff::1 2001:20::1 2001:2f:ffff::1 2001:30::1 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff 2001:db8::1 2001:db8:ffff::1
    2002:7f00:1::1 2002:808:808::1 2002:a9fe:a9fe::1 2620:4f:8000::1 3ffe::1 3ffe:ffff::1 3fff::1 3fff:fff:ffff::1 4000::1 5f00::1
    8000::1 a000::1 c000::1 e000::1 f000::1 f800::1 fc00::1 fd00:ec2::254 fdff:ffff::1 fe00::1 fe80::1 fe80::a9fe:a9fe febf::1 fec0::1
    feff::1 ff00::1 ff02::1 ff0e::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";

/// The last address before and the first after them, and some of well-known hosts.
const GLOBAL: &str = "
    1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255
    172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 203.0.112.255 203.0.114.0
    223.255.255.255 8.8.8.8 ::ffff:8.8.8.8 2000::1 2001:200::1 2001:db7::1 2001:db9::1 2003::1 2606:4700::1111 2620:4f:7fff::1
    2620:4f:8001::1 3ffd::1 3fff:1000::1 2a00:1450::1";

#[test]
fn only_what_is_reached_over_the_internet_is_global() {
    for (addresses, want) in [(NOT_GLOBAL, false), (GLOBAL, true)] {
        for text in addresses.split_whitespace() {
            assert_eq!(is_global(text.parse().unwrap()), want, "{text}");
        }
    }
}

proptest! {
    #[test]
    fn what_is_global_is_none_of_what_the_standard_library_knows(bits: u128, short: u32) {
        let (v4, v6) = (Ipv4Addr::from_bits(short), Ipv6Addr::from_bits(bits));
        let is_special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_broadcast() || v4.is_documentation()
            || v4.is_multicast() || v4.is_unspecified();
        prop_assert!(!(is_special && is_global(IpAddr::V4(v4))), "{v4}");
        prop_assert_eq!(is_global(IpAddr::V4(v4)), is_global(IpAddr::V6(v4.to_ipv6_mapped())));
        prop_assert!(!is_global(IpAddr::V6(v4.to_ipv6_compatible())));
        let is_special = v6.is_loopback() || v6.is_multicast() || v6.is_unicast_link_local() || v6.is_unique_local();
        prop_assert!(!(is_special && is_global(IpAddr::V6(v6))), "{v6}");
    }
}

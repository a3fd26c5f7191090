//! The test for global IP addresses: the only ones to which a webhook may be sent.
//!
//! The sources are IANA's registries of special-purpose addresses for IPv4 and IPv6 (RFC 6890 and its updates), of multicast
//! addresses, and of IPv6's global unicast assignments, as of 2026. Prefixes which the registries call globally reachable, but which no receiver
//! has, are dropped too: the anycast services that the nearest network answers, and translations that hide another address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The prefixes of IPv4 that are not global.
const NOT_GLOBAL_V4: [(Ipv4Addr, u32); 18] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),       // this network, and the unspecified address
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private (RFC 1918)
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // shared by carriers (RFC 6598)
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // link-local, and the metadata of clouds
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private (RFC 1918)
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // IETF protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation
    (Ipv4Addr::new(192, 31, 196, 0), 24), // AS112, anycast
    (Ipv4Addr::new(192, 52, 193, 0), 24), // AMT, anycast
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // relays of 6to4, deprecated
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private (RFC 1918)
    (Ipv4Addr::new(192, 175, 48, 0), 24), // AS112, anycast
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarking
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, and broadcast
];

/// The addresses of IPv6 that are assigned to hosts. Outside of it are the unspecified address, loopback, IPv4-compatible addresses, NAT64
/// (`64:ff9b::/96`, `64:ff9b:1::/48`), discard (`100::/64`), SRv6 (`5f00::/16`), unique local (`fc00::/7`, metadata included), link-local
/// (`fe80::/10`), site-local (`fec0::/10`) and multicast (`ff00::/8`).
const UNICAST_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The prefixes within it that are not global.
const NOT_GLOBAL_V6: [(Ipv6Addr, u32); 6] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // IETF protocol assignments: Teredo, ORCHID, benchmarking, ...
    (Ipv6Addr::new(0x2001, 0x0db8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4, which hides an IPv4 address
    (Ipv6Addr::new(0x2620, 0x004f, 0x8000, 0, 0, 0, 0, 0), 48), // AS112, anycast
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16), // 6bone, returned
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// Whether an address is global: reachable over the internet, and not within a network, on this
/// machine or by a translation.
///
/// An IPv4-mapped address (`::ffff:a.b.c.d`) is as global as the IPv4 address in it, to which a connection goes.
#[must_use]
pub fn is_global(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => !NOT_GLOBAL_V4.iter().any(|&prefix| has_v4(prefix, v4)),
        IpAddr::V6(v6) => has_v6(UNICAST_V6, v6) && !NOT_GLOBAL_V6.iter().any(|&prefix| has_v6(prefix, v6)),
    }
}

fn has_v4((first, bits): (Ipv4Addr, u32), address: Ipv4Addr) -> bool {
    let shift = u32::BITS - bits;
    first.to_bits() >> shift == address.to_bits() >> shift
}

fn has_v6((first, bits): (Ipv6Addr, u32), address: Ipv6Addr) -> bool {
    let shift = u128::BITS - bits;
    first.to_bits() >> shift == address.to_bits() >> shift
}

#[cfg(test)]
mod tests;

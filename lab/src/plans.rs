//! Plans of what goes wrong: faults, outages, weaknesses, and the switches that stop parts of the world.

pub(crate) mod acts;
pub(crate) mod broken;
pub(crate) mod faults;
pub(crate) mod first_details;
pub(crate) mod lanes;
pub(crate) mod later;
pub(crate) mod outages;
pub(crate) mod switches;
pub(crate) mod weakening;
pub(crate) mod weakness;

//! Plans of what goes wrong: faults, outages, and the switches that stop parts of the world.

pub(crate) mod acts;
pub(crate) mod broken;
pub(crate) mod faults;
pub(crate) mod later;
pub(crate) mod outages;
pub(crate) mod switches;

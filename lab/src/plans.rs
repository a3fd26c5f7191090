//! Plans of what goes wrong: faults, outages, limits of dates, and the switches that stop parts of the world.

pub(crate) mod acts;
pub(crate) mod broken;
pub(crate) mod faults;
pub(crate) mod later;
pub(crate) mod limits;
pub(crate) mod outages;
pub(crate) mod switches;

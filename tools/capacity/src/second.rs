//! One second of writes, as DynamoDB's partitions accept them: aggregated by shard, in thousandths of a write.
//!
//! A write needs every partition that it touches, those of the indexes too: an index at its limit rejects the write to
//! the table ("GSI write throttling and back-pressure" in the Developer Guide). Writes come evenly over the second. When a
//! partition has used its units, it rejects what still comes in that second.

use crate::placement::{Partitions, SPACE, position};

/// The write units a second of a partition, in thousandths. Burst capacity is left out: AWS does not promise it.
const PARTITION: i64 = 1_000 * 1_000;

/// The parts of a second.
const SECOND: i64 = 1_000_000;

/// A table or index.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) partitions: Partitions,
    /// The positions of the shards' keys, or nothing if its keys are so many that they spread evenly.
    shards: Option<Vec<u32>>,
    /// The partition of each shard.
    of_shard: Vec<usize>,
    /// The most units that one partition was asked for in a second, in thousandths.
    pub(crate) peak: i64,
    /// The seconds in which its partitions were throttled, all added.
    pub(crate) throttled_seconds: u64,
}

impl Place {
    /// Creates a place whose keys are the shards.
    pub(crate) fn for_shards(name: &str, partitions: u32, seed: u64, shards: usize) -> Self {
        let keys = (0..shards).map(|shard| position(seed, name, &shard.to_string())).collect();
        let mut place = Self { shards: Some(keys), ..Self::spread(name, partitions) };
        place.place_shards();
        place
    }

    /// Creates a place with a key for each payment or account.
    pub(crate) fn spread(name: &str, partitions: u32) -> Self {
        let partitions = Partitions::new(partitions);
        let (shards, of_shard) = (None, Vec::new());
        Self { name: name.to_owned(), partitions, shards, of_shard, peak: 0, throttled_seconds: 0 }
    }

    fn place_shards(&mut self) {
        let partitions = &self.partitions;
        self.of_shard = self.shards.iter().flatten().map(|&key| partitions.at(key)).collect();
    }
}

/// The writes of one kind that come in a second.
#[derive(Debug, Clone)]
pub(crate) struct Flow<'c> {
    /// The places that a write is charged to, by number, and its units there.
    pub(crate) costs: &'c [(usize, i64)],
    /// The writes of each shard, in thousandths.
    pub(crate) wanted: Vec<i64>,
    /// The accepted writes of each shard.
    pub(crate) accepted: Vec<i64>,
}

impl<'c> Flow<'c> {
    /// Creates a flow.
    pub(crate) fn new(costs: &'c [(usize, i64)], wanted: Vec<i64>) -> Self {
        Self { costs, accepted: vec![0; wanted.len()], wanted }
    }
}

/// The units that the partitions of a place still accept in a second.
#[derive(Debug)]
struct Left {
    units: Vec<i64>,
    exhausted: Vec<bool>,
    /// The part of the hash space whose partitions are not exhausted.
    open: i64,
}

/// Charges a second's writes to the partitions, which accept as many as they can. Counts and splits
/// those that are throttled.
pub(crate) fn accept(places: &mut [Place], flows: &mut [Flow<'_>]) {
    let mut is_too_much = false;
    for (number, place) in places.iter_mut().enumerate() {
        let most = most_asked(place, number, flows);
        place.peak = place.peak.max(most);
        is_too_much |= most > PARTITION;
    }
    if !is_too_much {
        for flow in flows.iter_mut() {
            flow.accepted.clone_from(&flow.wanted);
        }
        places.iter_mut().for_each(|place| place.partitions.pass_calm_second());
        return;
    }
    let mut left: Vec<Left> = places.iter().map(Left::new).collect();
    accept_until_exhausted(places, &mut left, flows);
    for (place, left) in places.iter_mut().zip(&left) {
        place.throttled_seconds += u64::try_from(left.exhausted.iter().filter(|&&it| it).count()).unwrap_or(0);
        if place.partitions.pass_second(&left.exhausted) {
            place.place_shards();
        }
    }
}

/// Returns the most units that one partition of a place is asked for.
fn most_asked(place: &Place, number: usize, flows: &[Flow<'_>]) -> i64 {
    let mut loads = vec![0; place.partitions.count()];
    for flow in flows {
        let Some((_, units)) = flow.costs.iter().find(|(place, _)| *place == number) else { continue };
        if place.shards.is_some() {
            for (wanted, &partition) in flow.wanted.iter().zip(&place.of_shard) {
                loads[partition] += wanted * units;
            }
        } else {
            loads[0] += flow.wanted.iter().sum::<i64>() * units;
        }
    }
    let most = loads.iter().copied().max().unwrap_or(0);
    if place.shards.is_some() { most } else { most * place.partitions.widest() / i64::from(SPACE) }
}

impl Left {
    fn new(place: &Place) -> Self {
        let count = place.partitions.count();
        Self { units: vec![PARTITION; count], exhausted: vec![false; count], open: i64::from(SPACE) }
    }

    fn exhaust(&mut self, number: usize, place: &Place) {
        self.exhausted[number] = true;
        self.open -= place.partitions.width(number);
    }
}

/// Advances from one exhausted partition to the next until the second is over.
fn accept_until_exhausted(places: &[Place], left: &mut [Left], flows: &mut [Flow<'_>]) {
    let mut now = 0;
    while now < SECOND {
        let rates: Vec<Vec<i64>> = flows.iter().map(|flow| rates(places, left, flow)).collect();
        let loads = loads(places, left, flows);
        // The partition that is exhausted first, and when.
        let mut next = (SECOND - now, None);
        for (place, (left, loads)) in left.iter().zip(&loads).enumerate() {
            for (number, &load) in loads.iter().enumerate().filter(|(number, _)| !left.exhausted[*number]) {
                let lasts = if load == 0 { SECOND } else { left.units[number] * SECOND / load };
                if lasts < next.0 {
                    next = (lasts, Some((place, number)));
                }
            }
        }
        let (time, exhausted) = next;
        for (flow, rates) in flows.iter_mut().zip(&rates) {
            for ((accepted, wanted), rate) in flow.accepted.iter_mut().zip(&flow.wanted).zip(rates) {
                *accepted = (*accepted + rate * time / SECOND).min(*wanted);
            }
        }
        for (left, loads) in left.iter_mut().zip(&loads) {
            for (units, load) in left.units.iter_mut().zip(loads) {
                *units -= load * time / SECOND;
            }
        }
        if let Some((place, number)) = exhausted {
            left[place].exhaust(number, &places[place]);
        }
        now += time;
    }
}

/// Returns the writes of each shard that are not rejected, for each second that they come at this rate.
fn rates(places: &[Place], left: &[Left], flow: &Flow<'_>) -> Vec<i64> {
    let mut rates = flow.wanted.clone();
    for &(number, _) in flow.costs {
        let (place, left) = (&places[number], &left[number]);
        if place.shards.is_some() {
            for (rate, &partition) in rates.iter_mut().zip(&place.of_shard) {
                if left.exhausted[partition] {
                    *rate = 0;
                }
            }
        } else if left.open < i64::from(SPACE) {
            rates.iter_mut().for_each(|rate| *rate = *rate * left.open / i64::from(SPACE));
        }
    }
    rates
}

/// Returns the units a second that each partition is asked for by writes that no other partition rejects.
fn loads(places: &[Place], left: &[Left], flows: &[Flow<'_>]) -> Vec<Vec<i64>> {
    let mut loads: Vec<Vec<i64>> = places.iter().map(|place| vec![0; place.partitions.count()]).collect();
    for flow in flows {
        let rates = rates(places, left, flow);
        for &(number, units) in flow.costs {
            let place = &places[number];
            let left = &left[number];
            let loads = &mut loads[number];
            if place.shards.is_some() {
                for (rate, &partition) in rates.iter().zip(&place.of_shard) {
                    loads[partition] += rate * units;
                }
                continue;
            }
            let total = rates.iter().sum::<i64>() * units;
            for (partition, load) in loads.iter_mut().enumerate().filter(|(partition, _)| !left.exhausted[*partition]) {
                *load += total * place.partitions.width(partition) / left.open;
            }
        }
    }
    loads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_one_shard(partitions: u32) -> Place {
        Place::for_shards("due", partitions, 1, 1)
    }

    #[test]
    fn a_partition_accepts_a_thousand_units_and_shares_them_fairly() {
        let mut places = [of_one_shard(4)];
        const COSTS: [(usize, i64); 2] = [(0, 1), (0, 4)];
        let flow = |writes: i64, cost: usize| Flow::new(&COSTS[cost..=cost], vec![writes * 1_000]);
        let mut flows = [flow(600, 0), flow(100, 1)];
        accept(&mut places, &mut flows);
        assert_eq!(flows.each_ref().map(|flow| flow.accepted[0]), [600_000, 100_000]);
        assert_eq!((places[0].peak, places[0].throttled_seconds), (1_000_000, 0));
        // Twice as much as it accepts: of each kind the half.
        let mut flows = [flow(1_200, 0), flow(200, 1)];
        accept(&mut places, &mut flows);
        assert_eq!(flows.each_ref().map(|flow| flow.accepted[0]), [600_000, 100_000]);
        assert_eq!((places[0].peak, places[0].throttled_seconds), (2_000_000, 1));
    }

    #[test]
    fn an_exhausted_index_rejects_the_write_to_the_table() {
        let mut places = [Place::spread("payments", 4), of_one_shard(4)];
        let mut flows = [Flow::new(&[(0, 1), (1, 2)], vec![1_000_000]), Flow::new(&[(0, 1)], vec![3_000_000])];
        accept(&mut places, &mut flows);
        assert_eq!(flows[0].accepted, [500_000]);
        // The table has its 4,000 units for both, and loses none to what the index rejects.
        assert_eq!(flows[1].accepted, [3_000_000]);
        assert_eq!((places[0].throttled_seconds, places[1].throttled_seconds), (0, 1));
    }

    #[test]
    fn a_spread_table_accepts_what_its_partitions_do_and_a_split_helps_it() {
        let mut places = [Place::spread("history", 4)];
        let mut ask = || {
            let mut flows = [Flow::new(&[(0, 8)], vec![600_000])];
            accept(&mut places, &mut flows);
            flows[0].accepted[0]
        };
        // 4,000 of 4,800 units.
        assert!(ask().abs_diff(500_000) < 10);
        for _ in 1..crate::placement::SPLITS_AFTER {
            ask();
        }
        assert_eq!(ask(), 600_000);
    }

    #[test]
    fn a_split_does_not_help_a_single_key() {
        let mut places = [of_one_shard(4)];
        for _ in 0..3_000 {
            accept(&mut places, &mut [Flow::new(&[(0, 1)], vec![2_000_000])]);
        }
        assert!(places[0].partitions.count() > 6);
        let mut flows = [Flow::new(&[(0, 1)], vec![2_000_000])];
        accept(&mut places, &mut flows);
        assert_eq!(flows[0].accepted, [1_000_000]);
    }
}

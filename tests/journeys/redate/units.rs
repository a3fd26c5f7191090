//! The cost of a redate, to the unit.

use fastrand::Rng;
use payments_machine::layers::record::is_of_runs;
use payments_machine::payload::DataKind;
use payments_tests::prelude::*;

use super::Announced;

#[tokio::test]
async fn a_move_costs_what_an_amendment_of_the_date_costs() -> Result<()> {
    let announced = Announced::new().await?;
    let data = DataKind::Structured.value(&mut Rng::with_seed(1), 7_500);
    announced.create_as("rent", &json!({ "dateRule": "following", "data": data })).await?;
    for (action, want) in [
        ("look", vec![]),
        ("move", vec![("history", 2), ("payments", 1), ("payments/due", 2), ("payments/moved", 1)]),
        ("move", vec![]),
    ] {
        drop(announced.world.take_units());
        announced.run(action).await?;
        let mut places: BTreeMap<String, u64> = BTreeMap::new();
        for ((operation, place), units) in announced.world.take_units() {
            if ["PutItem", "UpdateItem"].contains(&operation.as_str()) && !is_of_runs(&place) {
                *places.entry(place).or_default() += units;
            }
        }
        let want: BTreeMap<String, u64> = want.into_iter().map(|(place, units)| (place.to_owned(), units)).collect();
        assert_eq!(places, want, "{action}");
    }
    Ok(())
}

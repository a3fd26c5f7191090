//! Reasons of failures in words, by ISO 20022's codes.

/// The words for a code: those of ISO's name, with the payer as debtor and the payee as creditor. A code that is not listed here is its
/// own word.
pub(crate) fn reason(code: &str) -> &str {
    WORDS.iter().find(|(known, _)| *known == code).map_or(code, |(_, words)| words)
}

const WORDS: [(&str, &str); 27] = [
    ("AB08", "Payee’s bank is offline"),
    ("AC01", "Incorrect account number"),
    ("AC02", "Invalid account number of the payer"),
    ("AC03", "Invalid account number of the payee"),
    ("AC04", "Account closed"),
    ("AC05", "Payer’s account closed"),
    ("AC06", "Account blocked"),
    ("AC07", "Payee’s account closed"),
    ("AC14", "Invalid type of the payee’s account"),
    ("AG01", "Forbidden on this account"),
    ("AG03", "Transaction not supported"),
    ("AM02", "Amount not allowed"),
    ("AM03", "Currency not allowed"),
    ("AM04", "Insufficient funds"),
    ("AM05", "Duplicate"),
    ("AM14", "Above the agreed limit"),
    ("AM21", "Limit exceeded"),
    ("BE01", "Name and account do not match"),
    ("BE06", "Customer unknown"),
    ("ED05", "Settlement failed"),
    ("MD07", "Customer deceased"),
    ("MS02", "Refused by the customer"),
    ("MS03", "Refused by the bank"),
    ("NARR", "Another reason, in words"),
    ("RC01", "Incorrect bank identifier"),
    ("RC04", "Invalid identifier of the payee’s bank"),
    ("RR04", "Regulatory reason"),
];

#[cfg(test)]
mod tests {
    use payments_model::FailureCode;

    use super::*;

    #[test]
    fn each_listed_code_has_words() {
        assert_eq!(WORDS.map(|(code, _)| code), FailureCode::LISTED);
        assert_eq!((reason("AM04"), reason("XX99")), ("Insufficient funds", "XX99"));
    }
}

// Checks that the code which openapi-generator makes of openapi.yaml, with its defaults, does what its user expects at a running bank.

import java.time.LocalDate;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.AccountsApi;
import org.openapitools.client.api.BankApi;
import org.openapitools.client.model.BatchEntry;
import org.openapitools.client.model.BatchOrder;
import org.openapitools.client.model.Event;
import org.openapitools.client.model.EventPage;
import org.openapitools.client.model.Payment;
import org.openapitools.client.model.PaymentOrder;
import org.openapitools.client.model.PaymentPage;
import org.openapitools.client.model.Status;

class Checks {
    // Another one in each run, so that nothing is there.
    static final String ACCOUNT = "java-" + System.nanoTime();
    // More than 32 bits hold, and the most that a payment can have.
    static final long LARGE = 3_000_000_000L;
    static final long LARGEST = 9_007_199_254_740_991L;
    // A date on which London's clock is an hour ahead of UTC: a time that is taken for a date is another time.
    static final String JULY = LocalDate.parse(System.getenv("BANK_TODAY")).getYear() + 1 + "-07-12";

    final AccountsApi accounts;
    final BankApi bank;

    Checks(ApiClient client) {
        accounts = new AccountsApi(client);
        bank = new BankApi(client);
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.setBasePath(System.getenv("BANK_URL"));
        client.setBearerToken(System.getenv("BANK_TOKEN"));
        Checks checks = new Checks(client);
        for (long amount : new long[] {LARGE, LARGEST}) {
            expect("the amount", checks.create("large-" + amount, JULY, amount).getAmountMinor(), amount);
        }
        System.out.println("ok create");
        checks.lists();
        System.out.println("ok list");
        for (String scheduledFor : List.of(JULY, JULY + "T09:00:00Z", JULY + "T00:00:00Z", JULY + "T09:00:00+02:00")) {
            checks.amends(scheduledFor);
        }
        System.out.println("ok amend");
        checks.batches();
        System.out.println("ok batch");
        checks.events();
        System.out.println("ok events");
        // Its threads would keep the program for a while.
        System.exit(0);
    }

    Payment create(String key, String scheduledFor, long amount) throws ApiException {
        PaymentOrder order = new PaymentOrder().payeeAccountId("acc-2").amountMinor(amount).currency("IDR").scheduledFor(scheduledFor);
        return accounts.createPayment(ACCOUNT, key, order, null);
    }

    /** Looks for a scheduled and a cancelled payment in a list of two statuses, read a payment at a time. */
    void lists() throws ApiException {
        Payment scheduled = create("list-1", JULY, 1);
        Payment cancelled = create("list-2", JULY, 2);
        accounts.cancelPayment(ACCOUNT, cancelled.getPaymentId(), null, null);
        Map<UUID, Status> found = new HashMap<>();
        List<Status> statuses = List.of(Status.SCHEDULED, Status.CANCELLED);
        PaymentPage page = accounts.listAccountPayments(ACCOUNT, null, null, statuses, null, null, null, 1, null, null, null, null);
        while (true) {
            page.getPayments().forEach(payment -> found.put(payment.getPaymentId(), payment.getStatus()));
            if (page.getNextCursor() == null) {
                break;
            }
            page = accounts.listAccountPayments(
                ACCOUNT, null, null, null, null, null, null, 1, page.getNextCursor(), null, null, null);
        }
        expect("the scheduled payment", found.get(scheduled.getPaymentId()), Status.SCHEDULED);
        expect("the cancelled payment", found.get(cancelled.getPaymentId()), Status.CANCELLED);
    }

    /** Changes the amount alone, and sends back the rest as it was read. */
    void amends(String scheduledFor) throws ApiException {
        Payment first = create("amend-" + scheduledFor, scheduledFor, 100);
        PaymentOrder order = new PaymentOrder()
            .payeeAccountId(first.getPayeeAccountId())
            .amountMinor(LARGE)
            .currency(first.getCurrency())
            .scheduledFor(first.getScheduledFor());
        String version = "\"" + first.getVersion() + "\"";
        Payment amended = accounts.amendPayment(ACCOUNT, first.getPaymentId(), "raise", version, order, null);
        expect("the amount", amended.getAmountMinor(), LARGE);
        expect("the text", amended.getScheduledFor(), scheduledFor);
        expect("the due time", amended.getDueAt(), first.getDueAt());
    }

    /** Repeats a batch of one payment. */
    void batches() throws ApiException {
        BatchEntry entry = new BatchEntry()
            .accountId(ACCOUNT)
            .idempotencyKey("batch-1")
            .payeeAccountId("acc-2")
            .amountMinor(LARGE)
            .currency("IDR")
            .scheduledFor(JULY);
        for (Boolean replayed : new Boolean[] {null, true}) {
            var result = bank.createPaymentBatch(new BatchOrder().addPaymentsItem(entry), null).getResults().get(0);
            expect("the amount", result.getEntryCreated().getPayment().getAmountMinor(), LARGE);
            expect("whether it was there", result.getEntryCreated().getIdempotentReplayed(), replayed);
        }
    }

    /** Reads the log from its beginning on until it has the event of a payment; events follow payments within seconds. */
    void events() throws ApiException, InterruptedException {
        UUID wanted = create("event-1", JULY, LARGE).getPaymentId();
        String cursor = null;
        for (long end = System.nanoTime() + 30_000_000_000L; System.nanoTime() < end; ) {
            EventPage page = bank.listEvents(cursor, null, null);
            for (Event event : page.getEvents()) {
                if (wanted.equals(event.getPaymentId())) {
                    expect("the type", event.getType(), "payment.scheduled");
                    expect("the amount", event.getAmountMinor(), LARGE);
                    expect("who did it", event.getBy().getKind(), "client");
                    return;
                }
            }
            cursor = page.getNextCursor();
            if (!page.getHasMore()) {
                Thread.sleep(100);
            }
        }
        throw new AssertionError("no event after half a minute");
    }

    static void expect(String what, Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            throw new AssertionError(what + ": " + got + ", not " + wanted);
        }
    }
}

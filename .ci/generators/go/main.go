// Checks that the code which oapi-codegen makes of openapi.yaml, with its defaults, does what its user expects at a running bank.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"payments/generators/bank"
)

const (
	// More than 32 bits hold, and the most that a payment can have.
	large   = int64(3_000_000_000)
	largest = int64(9_007_199_254_740_991)
)

var (
	// Another one in each run, so that nothing is there.
	account = fmt.Sprintf("go-%d", time.Now().UnixNano())

	ctx    = context.Background()
	client = must(bank.NewClientWithResponses(os.Getenv("BANK_URL"), bank.WithRequestEditorFn(authorize)))
	// A date on which London's clock is an hour ahead of UTC: a time that is taken for a date is another time.
	july = fmt.Sprintf("%d-07-12", must(time.Parse(time.DateOnly, os.Getenv("BANK_TODAY"))).Year()+1)
)

func main() {
	for _, amount := range []int64{large, largest} {
		payment := create(fmt.Sprintf("large-%d", amount), july, amount)
		expect("the amount is what was sent", payment.AmountMinor, amount)
	}
	fmt.Println("ok create")
	lists()
	fmt.Println("ok list")
	for _, scheduledFor := range []string{july, july + "T09:00:00Z", july + "T00:00:00Z", july + "T09:00:00+02:00"} {
		amends(scheduledFor)
	}
	fmt.Println("ok amend")
	batches()
	fmt.Println("ok batch")
	events()
	fmt.Println("ok events")
}

func authorize(_ context.Context, request *http.Request) error {
	request.Header.Set("Authorization", "Bearer "+os.Getenv("BANK_TOKEN"))
	return nil
}

func create(key, scheduledFor string, amount int64) *bank.Payment {
	order := bank.PaymentOrder{PayeeAccountId: "acc-2", AmountMinor: amount, Currency: "IDR", ScheduledFor: scheduledFor}
	response := must(client.CreatePaymentWithResponse(ctx, account, &bank.CreatePaymentParams{IdempotencyKey: key}, order))
	if response.JSON201 == nil {
		panic(string(response.Body))
	}
	return response.JSON201
}

// lists looks for a scheduled and a cancelled payment in a list of two statuses, read a payment at a time.
func lists() {
	scheduled, cancelled := create("list-1", july, 1), create("list-2", july, 2)
	must(client.CancelPaymentWithResponse(ctx, account, cancelled.PaymentId, nil, bank.CancelPaymentJSONRequestBody{}))
	statuses, one := bank.StatusParameter{bank.SCHEDULED, bank.CANCELLED}, 1
	params := bank.ListAccountPaymentsParams{Status: &statuses, Limit: &one}
	found := map[string]bank.Status{}
	for {
		page := must(client.ListAccountPaymentsWithResponse(ctx, account, &params))
		if page.JSON200 == nil {
			panic(string(page.Body))
		}
		for _, payment := range page.JSON200.Payments {
			found[payment.PaymentId.String()] = payment.Status
		}
		if page.JSON200.NextCursor == nil {
			break
		}
		params = bank.ListAccountPaymentsParams{Cursor: page.JSON200.NextCursor, Limit: &one}
	}
	expect("the scheduled payment", found[scheduled.PaymentId.String()], bank.SCHEDULED)
	expect("the cancelled payment", found[cancelled.PaymentId.String()], bank.CANCELLED)
}

// amends changes the amount alone, and sends back the rest as it was read.
func amends(scheduledFor string) {
	first := create("amend-"+scheduledFor, scheduledFor, 100)
	order := bank.PaymentOrder{
		PayeeAccountId: first.PayeeAccountId, AmountMinor: large, Currency: first.Currency, ScheduledFor: first.ScheduledFor,
	}
	params := bank.AmendPaymentParams{IdempotencyKey: "raise", IfMatch: fmt.Sprintf("%q", fmt.Sprint(first.Version))}
	response := must(client.AmendPaymentWithResponse(ctx, account, first.PaymentId, &params, order))
	if response.JSON200 == nil {
		panic(string(response.Body))
	}
	amended := response.JSON200
	expect("the amount", amended.AmountMinor, large)
	expect("the text", amended.ScheduledFor, scheduledFor)
	expect("the due time", amended.DueAt, first.DueAt)
}

// batches repeats a batch of one payment.
func batches() {
	entry := bank.BatchEntry{
		AccountId: account, IdempotencyKey: "batch-1", PayeeAccountId: "acc-2", AmountMinor: large, Currency: "IDR", ScheduledFor: july,
	}
	for _, replayed := range []bool{false, true} {
		response := must(client.CreatePaymentBatchWithResponse(ctx, nil, bank.BatchOrder{Payments: []bank.BatchEntry{entry}}))
		if response.JSON200 == nil {
			panic(string(response.Body))
		}
		created := must(response.JSON200.Results[0].AsEntryCreated())
		expect("the amount", created.Payment.AmountMinor, large)
		expect("whether it was there", created.IdempotentReplayed != nil && *created.IdempotentReplayed, replayed)
	}
}

// events reads the log from its beginning on until it has the event of a payment; events follow payments within seconds.
func events() {
	wanted := create("event-1", july, large).PaymentId
	params := bank.ListEventsParams{}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		response := must(client.ListEventsWithResponse(ctx, &params))
		if response.JSON200 == nil {
			panic(string(response.Body))
		}
		for _, event := range response.JSON200.Events {
			if event.PaymentId != nil && *event.PaymentId == wanted {
				expect("the type", event.Type, "payment.scheduled")
				expect("the amount", *event.AmountMinor, large)
				expect("who did it", event.By.Kind, "client")
				return
			}
		}
		params.Cursor = &response.JSON200.NextCursor
		if !response.JSON200.HasMore {
			time.Sleep(100 * time.Millisecond)
		}
	}
	panic("no event after half a minute")
}

func expect[T comparable](what string, got, wanted T) {
	if got != wanted {
		panic(fmt.Sprintf("%s: %v, not %v", what, got, wanted))
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

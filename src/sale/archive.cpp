#include "sale/archive.hpp"

#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/descriptor.hpp"
#include "base/instant.hpp"
#include "sale/buckets/bucket_name.hpp"
#include "sale/order_life.hpp"
#include "sale/order_store_text.hpp"
#include "sale/payment_terms.hpp"
#include "sale/records.hpp"
#include "sale/sale.lua.hpp"
#include "sale/settlement.hpp"
#include "sale/store_of_sale.hpp"
#include "sluice/bucketed_sale.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale_audit.hpp"

namespace sluice::sale {
namespace {

/// A file that has its name only when it is whole.
class WholeFile {
 public:
  explicit WholeFile(const std::string& path)
      : path_(path),
        unfinished_(path + ".unfinished"),
        file_(::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    if (!file_.is_open()) fail("open");
    if (::flock(file_.number(), LOCK_EX | LOCK_NB) != 0) fail("another process writes it: flock");
    if (::ftruncate(file_.number(), 0) != 0) fail("ftruncate");
  }

  void write(std::string_view text) {
    while (!text.empty()) {
      const auto written = ::write(file_.number(), text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write");
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void finish() {
    if (::fsync(file_.number()) != 0) fail("fsync");
    if (::rename(unfinished_.c_str(), path_.c_str()) != 0) fail("rename");
    const auto slash = path_.rfind('/');
    const auto folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    const Descriptor parent{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!parent.is_open() || ::fsync(parent.number()) != 0) fail("fsync");
  }

 private:
  [[noreturn]] void fail(const char* call) const {
    const int cause = errno;
    throw Error{cause == ENOSPC || cause == EDQUOT ? Errc::out_of_space : Errc::bad_argument,
                fmt::format("{}: {}: {}", path_, call, std::strerror(cause))};
  }

  const std::string path_;
  const std::string unfinished_;
  Descriptor file_;
};

/// As a field of CSV. What a spreadsheet would run is escaped as what is no text: a beginning of a
/// formula, also of full width, and the ';' that begins a cell where a comma is in numbers.
std::string quoted(const std::string& bytes) {
  auto text = to_column(bytes);
  for (const std::string_view begin :
       {"=", "+", "-", "@", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"}) {
    if (!text.starts_with(begin)) continue;
    std::string escaped;
    for (const char c : begin) escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    text.replace(0, begin.size(), escaped);
  }
  for (auto at = text.find(';'); at != text.npos; at = text.find(';', at))
    text.replace(at, 1, "%3B");
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

/// Waits a moment. False: `stop` came.
bool pause(Clock& clock, const std::stop_token& stop) {
  Completion woken;
  const std::stop_callback wake{stop, [&] { woken.complete(); }};
  sluice::wait_until(woken, clock, clock.steady() + std::chrono::milliseconds{50}).get();
  return !stop.stop_requested();
}

/// Of a bucket: an archived one keeps what it has not sold, so the others must not sell any more.
void need_closed_siblings(Store& store, const SaleDefinition& bucket) {
  const auto whole = whole_name(bucket.name);
  auto sale = BucketedSale::load(store, whole).get();
  for (std::int64_t i = 0; sale && i < sale->buckets(); ++i) {
    const auto state = sale->bucket(i).status().get().state;
    if (state == SaleState::closed || state == SaleState::archived) continue;
    throw Error{Errc::bad_argument,
                fmt::format("sale '{0}' is one of {1} buckets, and bucket {2} is {3}: close the "
                            "whole sale first, 'sluice sale close {4}'",
                            bucket.name, sale->buckets(), i, to_string(state), whole)};
  }
}

/// Of a sale that is paid for: no worker looks at an archived one, so nothing may be left for it.
/// Refunds and messages need the database alone, and go on.
void need_ended_orders(const std::string& sale, OrderStore& orders) {
  const auto figures = orders.figures(sale);
  std::int64_t awaiting = 0;
  for (const auto& count : figures.orders)
    if (transition(count.state, OrderEvent::expired)) awaiting += count.orders;
  if (awaiting == 0 && figures.payments_asking == 0) return;
  std::string what;
  if (awaiting > 0)
    what = fmt::format("{} order(s) await their payment, the first of them until {}", awaiting,
                       figures.next_due ? to_text(*figures.next_due) : "a time that is not there");
  if (figures.payments_asking > 0)
    what += fmt::format("{}{} late payment(s) ask for units that are being taken again",
                        what.empty() ? "" : ", and ", figures.payments_asking);
  throw SaleIsNotOver{fmt::format(
      "sale '{}' is not archived: {}; cancel the orders, or archive again when their time has "
      "passed. The sale is closed",
      sale, what)};
}

/// Every order is in the database, and the audit says so.
void bring_in_all(Store& store, Sale& sale, OrderStore& orders, const std::stop_token& stop) {
  const auto& name = sale.definition().name;
  sale.close(orders);
  OrderWorker worker{store, sale, orders};
  for (;;) {
    worker.drain(stop);
    const auto status = sale.status().get();
    if (status.dead > 0)
      throw SaleIsNotOver{
          fmt::format("sale '{}' has {} dead letter(s): 'sluice sale dead {}' lists them; "
                      "settle them, then archive again",
                      name, status.dead, name)};
    if (status.waiting == 0) break;
    if (!pause(store.clock(), stop))
      throw SaleIsNotOver{
          fmt::format("sale '{}': stopped while {} order(s) are on their way; the sale is "
                      "closed",
                      name, status.waiting)};
  }
  sale.settle(orders);
  if (sale.definition().payment) need_ended_orders(name, orders);
  for (const auto& check : audit(store, sale, orders).checks)
    if (!check.ok)
      throw Error{Errc::corrupt,
                  fmt::format("sale '{}' is not archived, its audit fails: {} is {}, not {} ({}); "
                              "see 'sluice sale audit {}'",
                              name, check.name, check.figure, check.expected, check.detail, name)};
}

}  // namespace

void flag_orphans(const std::string& sale, OrderPayments& payments) {
  for (;;) {
    const auto waiting = payments.list(sale, PaymentState::waiting, page_size);
    bool is_any_ended = false;
    for (const auto& kept : waiting) is_any_ended |= payments.apply(kept.payment).now;
    if (!is_any_ended) return;
  }
}

void export_orders(OrderStore& orders, const std::string& sale, const std::string& file) {
  WholeFile out{file};
  out.write(
      "number,id,buyer,n,units,issued_at,request,state,reason,returned,price,currency,"
      "paid,refunded,settled\n");
  std::string price = ",";
  for (const auto& [field, value] : orders.definition(sale))
    if (field == payment_field) {
      const auto terms = terms_of(value);
      price = fmt::format("{},{}", terms.price, terms.currency);
    }
  std::int64_t after = -1;
  for (;;) {
    const auto page = orders.page(sale, after, page_size);
    std::vector<std::int64_t> ended;
    std::vector<std::int64_t> all;
    for (const auto& order : page) {
      all.push_back(order.id);
      if (!stands(order.state)) ended.push_back(order.id);
    }
    std::map<std::int64_t, std::int64_t> returned;
    for (const auto& row : orders.payments().find(sale, all)) returned[row.order.id] = row.returned;
    std::map<std::int64_t, OrderMoney> money;
    for (const auto& row : orders.payments().money_of(sale, all)) money[row.id] = row;
    const auto reasons = orders.reasons(sale, ended);
    auto reason = reasons.begin();
    std::string text;
    for (const auto& order : page)
      text +=
          fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", quoted(order.number), order.id,
                      quoted(order.buyer.value), order.n, order.units, to_text(order.issued_at),
                      quoted(order.request.value), to_string(order.state),
                      stands(order.state) ? "" : quoted(*reason++), returned[order.id], price,
                      money[order.id].paid, money[order.id].given_back, money[order.id].settled);
    out.write(text);
    if (page.size() < page_size) break;
    after = page.back().id;
  }
  out.finish();
}

bool archive(Store& store, Sale& sale, OrderStore& orders, const ArchiveOptions& options,
             const std::stop_token& stop) {
  constexpr std::size_t largest_step = 10'000;
  const auto& name = sale.definition().name;
  if (options.step < 1 || options.step > largest_step)
    throw Error{Errc::bad_argument,
                fmt::format("sale '{}': a step of {} orders, it must have 1 to {}", name,
                            options.step, largest_step)};
  const SaleKeys keys{name};
  const auto is_archived = [&] { return sale.status().get().state == SaleState::archived; };
  bool begun = is_archived();
  if (!begun && sale.definition().bucket) need_closed_siblings(store, sale.definition());
  try {
    if (!begun) bring_in_all(store, sale, orders, stop);
  } catch (const Error&) {
    begun = is_archived();  // another process was quicker, and has deleted what this one looked for
    if (!begun) throw;
  }
  if (attach(store, sale.definition(), orders) && begun)
    throw Error{Errc::database, rolled_back(name, orders.describe())};
  DatabaseTotals exported;
  const auto write_file = [&] {
    if (options.file.empty()) return;
    exported = orders.totals(name);
    export_orders(orders, name, options.file);
  };
  write_file();

  const auto now = fmt::to_string(store.time().get().time_since_epoch().count());
  if (!begun)
    orders.keep_definition(name, {{"archived", now}});  // before the store: it may be lost
  flag_orphans(name, orders.payments());
  attach(store, sale.definition(), orders);  // the store knows how far the database has come
  auto at = now;
  for (const auto& [field, value] : orders.definition(name))
    if (field == "archived") at = value;
  const Value hashes =
      store
          .run(scripts::sale_archive,
               {keys.sale, keys.orders, keys.dead, keys.buyers, keys.requests, keys.returned}, {at},
               repeatable)
          .get();
  if (hashes.is_null())
    throw SaleIsNotOver{
        fmt::format("sale '{}': an order came on its way meanwhile; archive again", name)};
  if (begun && hashes.as_integer() == 0) return false;
  // An order that was cancelled before the mark is so in the file.
  if (!begun && !options.file.empty())
    if (const auto marked = orders.totals(name);
        marked.orders != exported.orders || marked.units != exported.units)
      write_file();
  Records records{store, sale.definition()};
  while (records.remove_some(options.step).get())
    if (stop.stop_requested())
      throw SaleIsNotOver{fmt::format("sale '{}': stopped amid its deletion; archive again", name)};
  return true;
}

}  // namespace sluice::sale

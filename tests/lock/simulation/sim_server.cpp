#include "lock/simulation/sim_server.hpp"

#include <algorithm>

namespace sluice::simulation {
namespace {

constexpr std::string_view out_of_memory = "OOM command not allowed";

bool is_wait(const Batch::Item& item) { return !item.script && item.words.front() == "WAIT"; }

}  // namespace

SimServer::SimServer(VirtualClock& clock, Journal& journal, const Mutation& mutation,
                     Branches* branches, std::function<void()> after_step)
    : clock_(clock),
      journal_(journal),
      after_step_(std::move(after_step)),
      mutation_(mutation),
      scripts_(mutation, branches),
      engine_(engine::open_embedded({.clock = &clock})) {
  if (!branches) return;
  branch_listener_ =
      engine_
          ->listen(std::string{Branches::channel},
                   [branches](const Message& message) { branches->reached(message.payload); })
          .get();
}

/// The scripts as the mutation and the state of the server leave them. WAIT becomes PING.
Batch SimServer::batch_of(const Batch& batch) {
  Batch own;
  for (const auto& item : batch.items()) {
    const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
    const Words all{words};
    if (item.script) {
      own.add(scripts_.of(*item.script, terms_), all.first(item.key_count),
              all.subspan(item.key_count));
    } else if (is_wait(item)) {
      own.add({"PING"});
    } else {
      own.add(all);
    }
  }
  return own;
}

std::vector<Value> SimServer::execute(const Batch& batch) {
  std::vector<Value> replies;
  if (refuses()) {
    replies.assign(batch.size(), Value::error(refusal_));
  } else {
    replies = engine_->run(batch_of(batch)).get();
    for (auto& reply : replies)
      if (reply.is_error() && reply.as_text().find(out_of_memory) != std::string::npos)
        reply = Value::error(std::string{out_of_memory} + " when used memory > 'maxmemory'.");
    name_run(batch, replies);
  }
  write_down(batch, replies);
  after_step_();
  return replies;
}

/// A restarted server has another run id.
void SimServer::name_run(const Batch& batch, std::vector<Value>& replies) const {
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const auto& item = batch.items()[i];
    if (item.script || item.words.front() != "INFO") continue;
    auto& text = replies[i].as_text();
    if (const auto at = text.find("run_id:"); at != std::string::npos)
      text.insert(at + std::string_view{"run_id:"}.size(), fmt::format("{}-", life_));
  }
}

void SimServer::write_down(const Batch& batch, const std::vector<Value>& replies) {
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const auto& item = batch.items()[i];
    std::string_view request;  // of whom: the first word that is a request id
    if (item.script)
      for (const auto& word : item.words)
        if (word.size() > 33 && word[32] == '-' && request.empty())
          request = std::string_view{word}.substr(0, word.find(' '));
    journal_.note("server: {} {} -> {}", item.script ? item.script->name : item.words.front(),
                  request.size() > 33 ? request.substr(32) : request, to_string(replies[i]));
  }
}

Value SimServer::look(std::initializer_list<std::string_view> command) {
  return engine_->run(command).get();
}

Value SimServer::look(const Script& script, Words keys, Words args) {
  return engine_->run(script, keys, args, {}).get();
}

// --- ends and beginnings ---

void SimServer::go_down(Keeps keeps) {
  constexpr std::string_view with[] = {"with its data", "without its data", "from what it saved"};
  journal_.note("server: restarts {}", with[static_cast<int>(keeps)]);
  up_ = false;
  ++life_;
  if (keeps == Keeps::all) return;
  const bool partly = keeps == Keeps::saved && saved_;
  if (partly) {
    load(*saved_);
  } else {
    look({"FLUSHALL"});
  }
  forget(!partly);
}

void SimServer::load(const Snapshot& snapshot) { snapshot.load_into(*engine_); }

void SimServer::forget(bool all) {
  first_life_of_data_ = life_;
  forgot_at_ = clock_.wall();
  forgot_at_steady_ = clock_.steady();
  forgot_all_ = all;
}

void SimServer::come_back() {
  journal_.note("server: is back");
  up_ = true;
}

void SimServer::save() {
  journal_.note("server: saves");
  saved_ = Snapshot::of(*engine_);
}

// --- the replica ---

void SimServer::replica_falls_behind() {
  if (lagging_) return;
  journal_.note("server: the replica falls behind");
  lagging_ = Snapshot::of(*engine_);
}

void SimServer::replica_catches_up() {
  if (lagging_) journal_.note("server: the replica is up to date");
  lagging_.reset();
  for (const auto& waiting : std::exchange(waiting_, {})) waiting.answer(1);
}

void SimServer::promote_replica() {
  journal_.note("server: the replica takes over");
  ++life_;
  waiting_.clear();  // the connections are dead
  if (lagging_) load(*lagging_);
  lagging_ = Snapshot::of(*engine_);  // until there is a new one
}

void SimServer::when_replicated(std::chrono::milliseconds within,
                                std::function<void(std::int64_t)> answer) {
  if (!lagging_ || mutation_.wait_lies) return answer(1);
  const auto number = ++waits_;
  waiting_.push_back({number, std::move(answer)});
  clock_.after(within, [this, number] {
    const auto found = std::ranges::find(waiting_, number, &Waiting::number);
    if (found == waiting_.end()) return;
    const auto waiting = std::move(*found);
    waiting_.erase(found);
    waiting.answer(0);
  });
}

// --- the nodes of a cluster ---

void SimServer::move_slots() {
  constexpr unsigned nodes = 3;
  terms_.node = terms_.node % nodes + 1;
  terms_.deaf = true;
  journal_.note("server: the slots come to node {}", terms_.node);
}

void SimServer::own_slots() {
  journal_.note("server: node {} owns the slots", terms_.node);
  terms_.deaf = false;
}

// --- what it does to everybody ---

void SimServer::hang(std::chrono::nanoseconds time) {
  if (hangs_until_ > clock_.steady()) return;
  journal_.note("server: hangs for {} ms", time.count() / 1'000'000);
  hangs_until_ = clock_.steady() + time;
}

void SimServer::be_full(bool full) {
  if (full != terms_.full) journal_.note("server: {}", full ? "has no memory" : "has memory again");
  terms_.full = full;
}

void SimServer::refuse_with(std::string error) {
  journal_.note("server: {}", error.empty() ? "answers again" : "refuses with " + error);
  refusal_ = std::move(error);
}

}  // namespace sluice::simulation
